package zklock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// TestOrderOfADowngrade tests the cure of hazard Z19: a reader with the number of a writer comes right
// behind it, although it came after others. That takes no read; nor does leaving out who came after own.
func TestOrderOfADowngrade(t *testing.T) {
	const guid = "_c_f4b5e2a6-1c0b-4d3e-8f6a-0123456789ab-"
	all := []string{"a-lock-0000000004", guid + "__WRIT__0000000005", guid + "__READ__0000000005", "b-lock-0000000006"}
	for own, want := range map[string][]string{"": all, all[3]: all, all[0]: all[:1]} {
		line, err := new(engine).order(t.Context(), "/lock", []string{all[3], all[2], "foreign", all[0], all[1]}, own)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range line {
			got = append(got, c.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("order with own %q = %q, want %q", own, got, want)
		}
	}
}

// TestTies tests hazard Z6: where sequence numbers do not show who came first, they are not used.
func TestTies(t *testing.T) {
	for _, test := range []struct {
		seqs []int64 // sorted by rank
		want []int   // those that tie
	}{
		{nil, nil},
		{[]int64{0}, nil},
		{[]int64{1, 2, 7}, nil},
		{[]int64{3, 3}, []int{0, 1}},
		{[]int64{1, 3, 3, 4}, []int{1, 2}},
		{[]int64{math.MaxInt32}, nil},
		{[]int64{math.MaxInt32 - 2, math.MaxInt32 - 1, math.MaxInt32}, nil},
		{[]int64{5, math.MaxInt32, math.MaxInt32}, []int{1, 2}},
		{[]int64{5, -1}, nil},
		{[]int64{5, math.MinInt32, math.MaxInt32, -1}, []int{1, 2, 3}},
	} {
		var line []entry
		for i, seq := range test.seqs {
			line = append(line, entry{fmt.Sprint(i), seq})
		}
		var got []int
		for _, c := range ties(line) {
			got = append(got, slices.Index(line, c))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("ties(%v) = %v, want %v", test.seqs, got, test.want)
		}
	}
}

// TestCostOfALook guards that a look at a long queue takes apart no name that it need not: the cost of a hand-off hardly grows
// with those who wait.
func TestCostOfALook(t *testing.T) {
	const waiting = 1000
	names := map[string]string{
		"Curator":      "_c_f4b5e2a6-1c0b-4d3e-8f6a-0123456789ab-lock-%010d",
		"go-zookeeper": "_c_f4b5e2a61c0b4d3e8f6a0123456789ab-lock-%010d",
		"kazoo":        "f4b5e2a61c0b4d3e8f6a0123456789ab__lock__%010d",
	}
	for form, name := range names {
		e, children := new(engine), make([]string, waiting)
		for i := range children {
			children[i] = fmt.Sprintf(name, i)
		}
		allocations := testing.AllocsPerRun(10, func() {
			line, err := e.order(t.Context(), "/lock", children, children[2])
			if err != nil || len(line) != 3 {
				t.Fatal(len(line), err)
			}
		})
		if allocations > waiting/20 {
			t.Errorf("%s: a look at %d names makes %v allocations", form, waiting, allocations)
		}
	}
}

// Many nodes are to be read, and the first read fails, or the caller's ctx ends: no more are sent than may be under way, and the error
// says what it was.
func TestReadsEndWithTheFirstFailure(t *testing.T) {
	line := make([]entry, 1000)
	for i := range line {
		line[i].name = fmt.Sprint("n-", i)
	}
	errDenied, errWaited := errors.New("read /k/n-0: denied"), errors.New("waited long enough")
	for name, c := range map[string]struct {
		read func(ctx context.Context, end context.CancelCauseFunc) error
		want error
	}{
		"a read fails": {func(context.Context, context.CancelCauseFunc) error { return errDenied }, errDenied},
		"ctx ends": {func(ctx context.Context, end context.CancelCauseFunc) error {
			end(errWaited)
			<-ctx.Done()
			return fmt.Errorf("read /k/n-0: %w", driver.ContextError(ctx))
		}, errWaited},
		"ctx ends between two reads": {func(_ context.Context, end context.CancelCauseFunc) error {
			end(errWaited)
			return nil
		}, errWaited},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var sent atomic.Int64
			_, err := readEach(ctx, "/k", line, func(ctx context.Context, _ string) (zkconn.Znode, error) {
				sent.Add(1)
				return zkconn.Znode{}, c.read(ctx, cancel)
			})
			if n := sent.Load(); n > readers {
				t.Errorf("%d reads", n)
			}
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), "read /k") || c.want == errWaited && !errors.Is(err, context.Canceled) {
				t.Errorf("it returns %v", err)
			}
		})
	}
}
