package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// TestSimulatedProcesses guards that a process which is paused does nothing, and one that was killed nothing more, and that
// both happen while they do something.
func TestSimulatedProcesses(t *testing.T) {
	s := settings{
		Engine: "dynamodb", Seed: newSeed(t), Length: 30 * dynamoLease, Clients: 4, Workers: 2, Keys: 3,
		Kinds: []nemesis.Kind{nemesis.ClientPaused, nemesis.ClientKilled}, Dir: keptDir(t, "dynamodb"),
	}
	t.Logf("HOLDFAST_SEED=%d", s.Seed)
	var records []history.Record
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulation()
		s.Progress = t.Output()
		v, err := playIn(t.Context(), s, sim.world(s))
		if err != nil || v.err() != nil {
			t.Fatal(err, v.err())
		}
		sim.ends.Wait()
		time.Sleep(time.Minute) // requests that are in flight arrive
		records = sim.journal.all()
	})
	const moment = int64(time.Microsecond) // of virtual time, for what was under way
	stopped, killed, stops, late := map[string]int64{}, map[string]int64{}, 0, 0
	for i, rec := range records { // in the order in which they were recorded
		at, paused := stopped[rec.Process]
		switch gone, ok := killed[rec.Process]; {
		case rec.Process == "":
		case ok:
			t.Errorf("record %d, %+v, of a process that was killed at %d", i, rec, gone)
		case rec.What == history.Stopped:
			stopped[rec.Process] = rec.At
			stops++
		case rec.What == history.Resumed:
			delete(stopped, rec.Process)
		case rec.What == history.Killed:
			killed[rec.Process] = rec.At
		case paused && rec.At > at+moment:
			t.Errorf("record %d, %+v, of a process that was paused at %d", i, rec, at)
		case rec.What == history.Wrote && rec.Fenced && !rec.Accepted:
			late++
		}
	}
	if stops == 0 || len(killed) == 0 {
		t.Errorf("%d processes were paused, %d killed, want some", stops, len(killed))
	}
	t.Logf("%d pauses, %d processes killed, %d writes refused", stops, len(killed), late)
}
