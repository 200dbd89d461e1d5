package main

import (
	"slices"
	"testing"
	"time"
)

func TestBusiest(t *testing.T) {
	t.Parallel()
	const period = 5 * time.Second
	var even, tail []time.Duration
	for i := range 3000 { // three periods
		even = append(even, time.Duration(i)*period/1000)
	}
	for i := range 10 {
		tail = append(tail, period+time.Duration(i)*period/parts)
	}
	burst := slices.Repeat([]time.Duration{period - 1}, 40)
	for name, c := range map[string]struct {
		at   []time.Duration
		want []float64
	}{
		"even":                       {even, []float64{1, 1, 1}},
		"all at once":                {burst, []float64{parts}},
		"each period for itself":     {append(burst, tail...), []float64{parts, 1}},
		"one part has twice as much": {append(tail, tail[3]), []float64{20. / 11}},
		"nothing":                    {nil, nil},
		"after the last period":      {[]time.Duration{3 * period, 4 * period}, nil},
	} {
		if got := busiest(c.at, period, 3); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWorstOf(t *testing.T) {
	t.Parallel()
	ours := []float64{1, 6, 3, 5, 5, 4, 8}
	other := []float64{3, 1, 2, 1, 5, 2, 4}
	if got, want := worstOf(ours, other, 3), []float64{2, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := worstOf(nil, nil, 3); got != nil {
		t.Errorf("%v of nothing", got)
	}
}
