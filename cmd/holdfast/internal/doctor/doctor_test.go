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

// TestClock tests offsets of either sign, and from when on they are a problem on DynamoDB.
func TestClock(t *testing.T) {
	sent := time.Now()
	for ahead, test := range map[time.Duration]struct {
		found  string
		status Status
	}{
		0:                 {"it is about 0s ahead of", OK},
		time.Hour:         {"it is about 1h0m0s ahead of", Problem},
		-3 * time.Second:  {"it is about 3s behind", OK},
		-6 * time.Minute:  {"it is about 6m0s behind", Problem},
		299 * time.Second: {"it is about 4m59s ahead of", OK},
	} {
		var c clock
		c.note(sent, sent.Add(200*time.Millisecond), sent.Add(100*time.Millisecond+ahead))
		is(t, c.skew("it"), OK, test.found, "")
		if f := judgeClock(c); f.Status != test.status {
			t.Errorf("%v ahead: %+v, want %s", ahead, f, test.status)
		}
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
