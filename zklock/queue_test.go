package zklock

import (
	"fmt"
	"math"
	"slices"
	"testing"
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
