package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// is fails the test unless a finding has a status, and texts in what was found and in the
// cure. Only an ok finding has no cure.
func is(t *testing.T, f Finding, status Status, found, cure string) {
	t.Helper()
	if f.Status != status || !strings.Contains(f.Found, found) || !strings.Contains(f.Cure, cure) || (f.Cure == "") != (status == OK) {
		t.Errorf("found %+v, want %s with %q and the cure %q", f, status, found, cure)
	}
}

// TestExamine tests the course of an examination: it reports findings at once and in order,
// continues after an error that the engine answers with, and stops if there is no answer. It
// returns errors that do not concern the engine.
func TestExamine(t *testing.T) {
	errRefused := errors.New("refused")
	type look = func(*int, context.Context) ([]Finding, error)
	good := func(*int, context.Context) ([]Finding, error) { return []Finding{ok("1"), ok("2")}, nil }
	fails := func(err error) look {
		return func(*int, context.Context) ([]Finding, error) { return nil, err }
	}
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("Ctrl-C"))
	for name, test := range map[string]struct {
		ctx    context.Context
		first  look
		report error
		want   string
		err    string
	}{
		"all is well":    {t.Context(), good, nil, "a ok, a ok, b ok, b ok", "nil"},
		"refused":        {t.Context(), fails(fmt.Errorf("x: %w", errRefused)), nil, "a problem, b ok, b ok", "nil"},
		"silent":         {t.Context(), fails(errors.New("reset")), nil, "a problem", "nil"},
		"no permission":  {t.Context(), fails(errUnseen), nil, "a skipped, b ok, b ok", "nil"},
		"enough":         {t.Context(), fails(errEnough), nil, "", "nil"},
		"makes no sense": {t.Context(), fails(driver.Invalid("prefix", "it is odd")), nil, "", "it is odd"},
		"interrupted":    {interrupted, fails(context.Canceled), nil, "", "Ctrl-C"},
		"nobody listens": {t.Context(), good, errors.New("disk full"), "a ok", "disk full"},
		"too slow": {t.Context(), func(_ *int, ctx context.Context) ([]Finding, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}, nil, "a problem", "nil"},
	} {
		timeout := time.Hour
		if name == "too slow" {
			timeout = 50 * time.Millisecond
		}
		var told []string
		err := examine(test.ctx, examination{
			timeout: timeout,
			report: func(f Finding) error {
				told = append(told, f.ID+" "+string(f.Status))
				return test.report
			},
			refused: func(err error) bool { return errors.Is(err, errRefused) },
		}, new(int), []check[*int]{{"a", test.first}, {"b", good}})
		if got := strings.Join(told, ", "); got != test.want || !strings.Contains(fmt.Sprint(err), test.err) {
			t.Errorf("%s: it reported %q and returned %v, want %q and %s", name, got, err, test.want, test.err)
		}
	}
}

// TestJudgeWrites checks from which times on writes are too slow for a lease: a limit of 6 s is that of a session of 24 s.
func TestJudgeWrites(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		median, worst time.Duration
		status        Status
		found, cure   string
	}{
		{ms, ms, OK, "1ms in the median and 1ms at worst of 3; a lock is renewed every 4s, and a request given up after 6s", ""},
		{1199 * ms, 2999 * ms, OK, "2.999s at worst", ""},
		{ms, 3000 * ms, Warning, "one heartbeat that fails", "fsync"},
		{1200 * ms, 1200 * ms, Warning, "one heartbeat that fails", "--lease"},
		{ms, 6000 * ms, Problem, "although nothing fails", "throttling"},
		{3000 * ms, 3000 * ms, Problem, "although nothing fails", "--lease"},
	} {
		is(t, judgeWrites([]time.Duration{ms, c.median, c.worst}, 4*time.Second, 6*time.Second), c.status, c.found, c.cure)
	}
}

// TestShell checks that the user can copy a command with any word in it.
func TestShell(t *testing.T) {
	for word, want := range map[string]string{
		"orders/42": "orders/42", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "a;b": "'a;b'", "käse": "'käse'",
	} {
		if got := shell(word); got != want {
			t.Errorf("shell(%q) = %s, want %s", word, got, want)
		}
	}
}
