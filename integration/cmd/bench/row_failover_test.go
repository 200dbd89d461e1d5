package main

import (
	"slices"
	"testing"
	"time"
)

func TestRunnerFigures(t *testing.T) {
	t.Parallel()
	ours := &runner{name: "holdfast", rounds: [][]time.Duration{
		{electionSession, electionSession / 2}, {electionSession / 4, electionSession / 4},
	}}
	other := &runner{name: "etcd's Election", rounds: [][]time.Duration{
		{electionSession / 2, electionSession / 4}, {electionSession / 2, electionSession / 2},
	}}
	if got := ours.judge("ZooKeeper", "session").Sample; !slices.Equal(got, []float64{1, 0.25}) {
		t.Errorf("the longest of each kill: %v", got)
	}
	row := ours.against(other)
	if row.Least != 0.5 || row.Greatest != 2 || row.Contest.Where != withEtcd.name || !row.Contest.Election {
		t.Errorf("against another: %+v", row)
	}
}

// TestBeforehand guards that a round is not counted in which somebody lost a term without a kill.
func TestBeforehand(t *testing.T) {
	t.Parallel()
	quiet := &runner{name: "quiet", last: []time.Duration{5 * time.Second, time.Millisecond}}
	busy := &runner{name: "busy", last: []time.Duration{5 * time.Second, 0}}
	if got := beforehand([]*runner{quiet, quiet}); got != nil {
		t.Errorf("%q of none", got)
	}
	if got := beforehand([]*runner{quiet, busy}); !slices.Equal(got, []string{"busy"}) {
		t.Errorf("%q, want busy", got)
	}
}
