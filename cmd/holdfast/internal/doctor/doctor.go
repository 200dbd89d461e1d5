// Package doctor examines an engine as a client of holdfast sees it, and reports what is
// wrong and what to do about it.
//
// An examination is a list of checks. A check looks at one thing and returns findings, each
// of which is a line for the user. Whatever a check creates has a random name, disturbs
// nobody, and is removed at the end of the examination, even if that is interrupted.
package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Status says how bad a finding is.
type Status string

// A problem keeps locks from working or from excluding; a warning may lead to that, or is
// a matter of choice. A skipped check could not be made.
const (
	OK      Status = "ok"
	Skipped Status = "skipped"
	Warning Status = "warning"
	Problem Status = "problem"
)

// A Finding is the result of a check.
type Finding struct {
	ID     string `json:"id"` // of the check
	Status Status `json:"status"`
	Found  string `json:"found"`
	Cure   string `json:"cure,omitempty"` // what to do, unless all is well
}

func ok(found string, args ...any) Finding {
	return Finding{Status: OK, Found: fmt.Sprintf(found, args...)}
}

func skipped(cure, found string, args ...any) Finding {
	return Finding{Status: Skipped, Found: fmt.Sprintf(found, args...), Cure: cure}
}

func warning(cure, found string, args ...any) Finding {
	return Finding{Status: Warning, Found: fmt.Sprintf(found, args...), Cure: cure}
}

func problem(cure, found string, args ...any) Finding {
	return Finding{Status: Problem, Found: fmt.Sprintf(found, args...), Cure: cure}
}

// only is the result of a check with one finding.
func only(f Finding) ([]Finding, error) { return []Finding{f}, nil }

// last is the result of a check after which no other makes sense.
func last(f Finding) ([]Finding, error) { return []Finding{f}, errEnough }

// A check looks at one thing of a subject. It fails if it cannot tell.
type check[S any] struct {
	id   string
	look func(subject S, ctx context.Context) ([]Finding, error) // a method of the subject
}

// errEnough ends an examination after the findings of a check.
var errEnough = errors.New("the rest cannot be looked at")

// errUnseen is for a check that lacks permissions; the check of permissions says which.
var errUnseen = errors.New("not looked at, for want of permissions")

// permit is the cure for a check that lacks permissions.
const permit = "grant the permissions that are missing, as other lines say"

// An examination is what the checks of an engine have in common.
type examination struct {
	timeout time.Duration        // for each check
	report  func(Finding) error  // gets each finding; its error ends the examination
	refused func(err error) bool // whether the engine has answered with an error, so that it may answer others
}

// examine runs one check after the other until the engine no longer answers. Its error
// never concerns the engine: ctx has ended, the settings are invalid, or a report failed.
func examine[S any](ctx context.Context, e examination, subject S, checks []check[S]) error {
	for _, c := range checks {
		findings, err := bounded(ctx, e.timeout, func(ctx context.Context) ([]Finding, error) { return c.look(subject, ctx) })
		switch {
		case err == nil, errors.Is(err, errEnough):
		case errors.Is(err, errUnseen):
			findings, err = append(findings, skipped(permit, "%v", err)), nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, holdfast.ErrInvalid):
			return err
		case e.refused(err):
			findings = append(findings, problem("see docs/operations.md, What to do when", "%v", err))
		default:
			findings = append(findings, problem("see to the connection, or give a longer --timeout; nothing after this was looked at", "%v", err))
		}
		for _, f := range findings {
			f.ID = c.id
			if err := e.report(f); err != nil {
				return err
			}
		}
		if err != nil && !e.refused(err) {
			return nil
		}
	}
	return nil
}

// valid checks settings before anything is sent: it connects with a ctx that has ended.
func valid(connect func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := connect(ctx); errors.Is(err, holdfast.ErrInvalid) {
		return err
	}
	return nil
}

// bounded calls f with a limit. Any error after the limit means that there was no answer.
func bounded[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	over := noAnswer{limit}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, over)
	defer cancel()
	value, err := f(ctx)
	if err != nil && !errors.Is(err, errEnough) && errors.Is(context.Cause(ctx), over) {
		err = over
	}
	return value, err
}

// noAnswer is the cause of a ctx that has reached its limit.
type noAnswer struct{ limit time.Duration }

func (n noAnswer) Error() string { return fmt.Sprintf("no answer within %v", n.limit) }

// grace is how long a trial may continue after an interrupt: ending it properly is usually
// faster than finding out what became of it.
const grace = time.Second

// late returns a ctx that ends a grace later.
func late(ctx context.Context) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
	})
	return later, func() {
		stop()
		cancel(nil)
	}
}

// cleanTimeout bounds the removal of what was created, even after an interrupt.
const cleanTimeout = 5 * time.Second

// cleaning returns a ctx for that.
func cleaning(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), min(limit, cleanTimeout))
}

// probePrefix begins the name of everything that an examination creates. Other
// examinations ignore such names.
const probePrefix = "holdfast-doctor-"

// probeName returns a unique name.
func probeName() string { return probePrefix + strings.ToLower(rand.Text()[:16]) }

// tryLock acquires, verifies, inspects and releases a lock. It always releases.
func tryLock(ctx context.Context, locker *holdfast.Client, key string, limit time.Duration) (Finding, error) {
	ctx, cancel := late(ctx)
	defer cancel()
	began := time.Now()
	lock, err := locker.TryAcquire(ctx, key)
	if err != nil {
		return Finding{}, err
	}
	acquired := time.Since(began)
	defer func() {
		ctx, cancel := cleaning(limit)
		defer cancel()
		_ = lock.Release(ctx)
	}()
	if err := lock.Verify(ctx); err != nil {
		return Finding{}, err
	}
	info, err := locker.Inspect(ctx, key)
	if err != nil {
		return Finding{}, err
	}
	if !info.Held || info.Token != lock.Token() || info.Owner != lock.Owner() {
		return problem("see to other programs that change what they find, and to proxies or caches on the way",
			"a lock that was acquired by %q with token %d is shown as held by %q with token %d", lock.Owner(), lock.Token(), info.Owner, info.Token), nil
	}
	began = time.Now()
	if err := lock.Release(ctx); err != nil && !errors.Is(err, holdfast.ErrReleasePending) {
		return Finding{}, err
	}
	return ok("acquired in %v, verified, shown, and released in %v", figure(acquired), figure(time.Since(began))), nil
}

// A clock is the offset of a server's wall clock from this machine's.
type clock struct {
	known bool
	ahead time.Duration // to within half a round trip and half the unit in which the server shows its clock
}

// note records what a server's clock showed between a request and its answer.
func (c *clock) note(sent, answered, shown time.Time) {
	c.known, c.ahead = true, shown.Sub(sent.Add(answered.Sub(sent)/2))
}

// skew reports the offset. It matters only to those who compare clocks.
func (c clock) skew(server string) Finding {
	way := "ahead of"
	if c.ahead < 0 {
		way = "behind"
	}
	return ok("the clock of %s is about %v %s this machine's; locks do not depend on that", server, figure(c.ahead.Abs()), way)
}

// latencies are the durations of some calls.
type latencies []time.Duration

func (l latencies) median() time.Duration { return slices.Sorted(slices.Values(l))[len(l)/2] }

func (l latencies) worst() time.Duration { return slices.Max(l) }

func (l latencies) String() string {
	return fmt.Sprintf("%v in the median and %v at worst of %d", figure(l.median()), figure(l.worst()), len(l))
}

// some lists the first few of many.
func some(all []string) string {
	const few = 3
	if len(all) <= few {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:few], ", "), len(all)-few)
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// figure rounds a duration to what is worth reading.
func figure(d time.Duration) time.Duration {
	switch {
	case d.Abs() < time.Millisecond:
		return d.Round(time.Microsecond)
	case d.Abs() < time.Second:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// shell quotes a word for a command that the user may copy.
func shell(word string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:,@%+=", r)
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
