// Package doctor looks at an engine as a client of holdfast finds it, and says
// what is wrong with it and what to do about that.
//
// An examination is a list of checks. A check is a function that looks at one
// thing and returns what it has found, each finding being one line for the user.
// What a check makes has a random name, disturbs nobody, and is removed at the
// end of the examination, however that comes about.
package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Status says how bad a finding is.
type Status string

// A problem keeps locks from working, or from excluding; a warning may come to
// that, or is a matter of choice.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Problem Status = "problem"
)

// A Finding is what a check has found.
type Finding struct {
	ID     string `json:"id"` // of the check
	Status Status `json:"status"`
	Found  string `json:"found"`
	Cure   string `json:"cure,omitempty"` // what to do, unless all is well
}

func ok(found string, args ...any) Finding {
	return Finding{Status: OK, Found: fmt.Sprintf(found, args...)}
}

func warning(cure, found string, args ...any) Finding {
	return Finding{Status: Warning, Found: fmt.Sprintf(found, args...), Cure: cure}
}

func problem(cure, found string, args ...any) Finding {
	return Finding{Status: Problem, Found: fmt.Sprintf(found, args...), Cure: cure}
}

// only is the result of a check with one finding.
func only(f Finding) ([]Finding, error) { return []Finding{f}, nil }

// A check looks at one thing of a subject. It fails if it cannot tell.
type check[S any] struct {
	id   string
	look func(subject S, ctx context.Context) ([]Finding, error) // a method of the subject
}

// errEnough is for a check after whose findings no other makes sense.
var errEnough = errors.New("the rest cannot be looked at")

// errUnseen is for a check that lacks permissions. Which, the check of permissions tells.
var errUnseen = errors.New("not looked at, for want of permissions")

// An examination is what the checks of an engine have in common.
type examination struct {
	timeout time.Duration        // for each check
	report  func(Finding) error  // is told of each finding; its error ends the examination
	refused func(err error) bool // whether an error is an answer of the engine: others may come
}

// examine makes one check after the other, until the engine does not answer any
// more. What it returns has nothing to do with the engine: ctx has ended, what
// was asked for makes no sense, or a report has failed.
func examine[S any](ctx context.Context, e examination, subject S, checks []check[S]) error {
	for _, c := range checks {
		findings, err := bounded(ctx, e.timeout, func(ctx context.Context) ([]Finding, error) { return c.look(subject, ctx) })
		switch {
		case err == nil, errors.Is(err, errEnough):
		case errors.Is(err, errUnseen):
			findings, err = append(findings, ok("%v", err)), nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, holdfast.ErrInvalid):
			return err
		case e.refused(err):
			findings = append(findings, problem("see docs/operating.md, What to do when", "%v", err))
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

// bounded calls f with a ctx that ends after a time. If f fails after that, it is
// for want of an answer, whatever its error says.
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

// noAnswer is the cause of a ctx that has ended for a limit.
type noAnswer struct{ limit time.Duration }

func (n noAnswer) Error() string { return fmt.Sprintf("no answer within %v", n.limit) }

// grace is for how long what is under way may go on after an interrupt: to end
// it properly takes less, as a rule, than to find out what became of it.
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

// cleanTimeout bounds how long it may take to remove what was made, whether or
// not the examination was interrupted.
const cleanTimeout = 5 * time.Second

// cleaning returns a ctx for that.
func cleaning(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), min(limit, cleanTimeout))
}

// probePrefix begins the names of all that an examination makes. What has such
// a name is never examined: it is another's probe.
const probePrefix = "holdfast-doctor-"

// probeName returns a name that nobody else has.
func probeName() string { return probePrefix + strings.ToLower(rand.Text()[:16]) }

// tryLock goes through the life of a lock. However it ends, the lock is released.
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
	case d < time.Millisecond && d > -time.Millisecond:
		return d.Round(time.Microsecond)
	case d < time.Second && d > -time.Second:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// shell quotes a word for a command that the user may copy.
func shell(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,@%+=", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
