package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// is fails the test unless a finding has a status, and texts in what was found
// and in the cure. Only what is ok has no cure.
func is(t *testing.T, f Finding, status Status, found, cure string) {
	t.Helper()
	if f.Status != status || !strings.Contains(f.Found, found) || !strings.Contains(f.Cure, cure) || (f.Cure == "") != (status == OK) {
		t.Errorf("found %+v, want %s with %q and the cure %q", f, status, found, cure)
	}
}

var errRefused = errors.New("refused")

// TestExamine tests the course of an examination: findings are told at once and
// in order, an answer of the engine is no reason to stop, silence is, and what
// has nothing to do with the engine is returned.
func TestExamine(t *testing.T) {
	full := errors.New("disk full")
	good := func(*int, context.Context) ([]Finding, error) { return []Finding{ok("1"), ok("2")}, nil }
	fails := func(err error) func(*int, context.Context) ([]Finding, error) {
		return func(*int, context.Context) ([]Finding, error) { return nil, err }
	}
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("Ctrl-C"))
	for name, test := range map[string]struct {
		ctx    context.Context
		first  func(*int, context.Context) ([]Finding, error)
		report error
		want   string
		err    string
	}{
		"all is well":    {first: good, want: "a ok, a ok, b ok, b ok"},
		"refused":        {first: fails(fmt.Errorf("x: %w", errRefused)), want: "a problem, b ok, b ok"},
		"silent":         {first: fails(errors.New("reset")), want: "a problem"},
		"enough":         {first: fails(errEnough), want: ""},
		"makes no sense": {first: fails(driver.Invalid("prefix", "it is odd")), want: "", err: "it is odd"},
		"interrupted":    {ctx: interrupted, first: func(_ *int, ctx context.Context) ([]Finding, error) { return nil, ctx.Err() }, want: "", err: "Ctrl-C"},
		"nobody listens": {first: good, report: full, want: "a ok", err: "disk full"},
		"too slow": {first: func(_ *int, ctx context.Context) ([]Finding, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}, want: "a problem"},
	} {
		ctx := test.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		var told []string
		err := examine(ctx, examination{
			timeout: 50 * time.Millisecond,
			report: func(f Finding) error {
				told = append(told, f.ID+" "+string(f.Status))
				return test.report
			},
			refused: func(err error) bool { return errors.Is(err, errRefused) },
		}, new(int), []check[*int]{{id: "a", look: test.first}, {id: "b", look: good}})
		if got := strings.Join(told, ", "); got != test.want {
			t.Errorf("%s: told %q, want %q", name, got, test.want)
		}
		if got := fmt.Sprint(err); test.err == "" && err != nil || !strings.Contains(got, test.err) {
			t.Errorf("%s: returned %q, want %q", name, got, test.err)
		}
	}
}

// TestChecksAreNamed checks that the checks of an engine have names of their own.
func TestChecksAreNamed(t *testing.T) {
	var zookeeper, dynamo []string
	for _, c := range zooKeeperChecks {
		zookeeper = append(zookeeper, c.id)
	}
	for _, c := range dynamoChecks {
		dynamo = append(dynamo, c.id)
	}
	for _, ids := range [][]string{zookeeper, dynamo} {
		if slices.Sort(ids); len(slices.Compact(slices.Clone(ids))) != len(ids) || slices.Contains(ids, "") {
			t.Errorf("the names are %q", ids)
		}
	}
}

// TestShell checks that what a user copies means what it says.
func TestShell(t *testing.T) {
	for word, want := range map[string]string{
		"orders/42": "orders/42", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "a;b": "'a;b'", "käse": "'käse'",
	} {
		if got := shell(word); got != want {
			t.Errorf("shell(%q) = %s, want %s", word, got, want)
		}
	}
}

// TestSome tests the beginning of long lists.
func TestSome(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "a", 3: "a, b, c", 5: "a, b, c and 2 more"} {
		if got := some(strings.Split("abcde", "")[:n]); got != want {
			t.Errorf("some of %d is %q, want %q", n, got, want)
		}
	}
}
