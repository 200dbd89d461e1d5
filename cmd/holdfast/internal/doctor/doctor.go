// Package doctor examines an engine as a client of holdfast sees it, and reports problems with their cures.
//
// An examination is a list of checks. A check looks at one thing and returns findings, each of which is a line for the user. All that a
// check creates has a random name, and is removed at the end of the examination, even after an interrupt.
package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Status says how bad a finding is.
type Status string

// A problem keeps locks from working or from excluding. A warning may lead to that, or is a matter of choice. A skipped check could not
// be made.
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
	Cure   string `json:"cure,omitempty"` // empty only if the status is OK
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

// errUnseen is for a check that lacks permissions. The check of permissions names them.
var errUnseen = errors.New("not looked at, for want of permissions")

// permit is the cure for a check that lacks permissions.
const permit = "grant the permissions that are missing, as other lines say"

// An examination is what the checks of an engine have in common.
type examination struct {
	timeout time.Duration        // for each check
	report  func(Finding) error  // gets each finding; its error ends the examination
	refused func(err error) bool // whether the engine has answered with an error, so that it may answer others
}

// examine runs the checks in order until the engine no longer answers. Its error never concerns the engine: ctx has ended, the settings
// are invalid, or a report failed.
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

// bounded makes a check within a limit. After the limit, any error means that there was no answer.
func bounded(ctx context.Context, limit time.Duration, look func(context.Context) ([]Finding, error)) ([]Finding, error) {
	over := fmt.Errorf("no answer within %v", limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, over)
	defer cancel()
	findings, err := look(ctx)
	if err != nil && !errors.Is(err, errEnough) && errors.Is(context.Cause(ctx), over) {
		err = over
	}
	return findings, err
}

// cleaning returns a ctx that bounds the removal of what was created, even after an interrupt.
func cleaning(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), min(limit, 5*time.Second))
}

// probePrefix begins the name of everything that an examination creates. Other examinations ignore such names.
const probePrefix = "holdfast-doctor-"

// probeName returns a unique name.
func probeName() string { return probePrefix + strings.ToLower(rand.Text()[:16]) }

// tryLock acquires, verifies, inspects and releases a lock. It always releases.
func tryLock(ctx context.Context, locker *holdfast.Client, key string, limit time.Duration) ([]Finding, error) {
	began := time.Now()
	lock, err := locker.TryAcquire(ctx, key)
	if err != nil {
		return nil, err
	}
	acquired := time.Since(began)
	defer func() {
		ctx, cancel := cleaning(limit)
		defer cancel()
		_ = lock.Release(ctx)
	}()
	if err := lock.Verify(ctx); err != nil {
		return nil, err
	}
	info, err := locker.Inspect(ctx, key)
	if err != nil {
		return nil, err
	}
	if !info.Held || info.Token != lock.Token() || info.Owner != lock.Owner() {
		return only(problem("look for other programs that change locks, and for proxies or caches between this machine and the engine",
			"a lock that was acquired by %q with token %d is shown as held by %q with token %d", lock.Owner(), lock.Token(), info.Owner, info.Token))
	}
	began = time.Now()
	if err := lock.Release(ctx); err != nil && !errors.Is(err, holdfast.ErrReleasePending) {
		return nil, err
	}
	return only(ok("acquired in %v, verified, shown, and released in %v", figure(acquired), figure(time.Since(began))))
}

// measure times ten writes.
func measure(write func() error) (took []time.Duration, err error) {
	for range 10 {
		began := time.Now()
		if err := write(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took, nil
}

// judgeWrites compares the times of writes, in order, with the limit after which a client gives up a heartbeat, which is a write. From
// two fifths of the limit on, one lost or late heartbeat after another loses locks without a fault; from a fifth on, one that fails does.
func judgeWrites(took []time.Duration, heartbeat, limit time.Duration) Finding {
	median, worst := took[len(took)/2], took[len(took)-1]
	told := fmt.Sprintf("writes took %v in the median and %v at worst of %d; a lock is renewed every %v, and a request given up after %v",
		figure(median), figure(worst), len(took), figure(heartbeat), figure(limit))
	const cure = "use a nearer region or servers; look for throttling, load, garbage collection and slow disks (fsync); or give a longer --lease"
	switch {
	case worst >= limit, median >= limit*2/5:
		return problem(cure, "%s: locks are lost although nothing fails", told)
	case worst >= limit/2, median >= limit/5:
		return warning(cure, "%s: one heartbeat that fails costs the locks", told)
	}
	return ok("%s", told)
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

// figure rounds a duration to the digits that are worth reading.
func figure(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

var plainWord = regexp.MustCompile(`^[-\w./:,@%+=]+$`)

// shell quotes a word for a command that the user may copy.
func shell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
