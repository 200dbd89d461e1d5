package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// TestSimulatedStrike is TestStrike in virtual time: what a fault does is the same there.
func TestSimulatedStrike(t *testing.T) {
	for i, c := range strikes {
		if c.kind == nemesis.Cut && !c.pick.notice {
			continue // some requests use the old connection first
		}
		synctest.Test(t, func(t *testing.T) {
			s, err := startTable(t.Context(), casting{Slots: 2})
			if err != nil {
				t.Fatal(err)
			}
			probe := func(slot int, id string) error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				defer time.AfterFunc(dynamoLease, cancel).Stop()
				_, err := s.plug(s.login(slot)).(*tableCable).UpdateItem(ctx, &dynamodb.UpdateItemInput{
					TableName: aws.String(simulatedTable), Key: itemKey(id), UpdateExpression: aws.String("SET #a = :a"),
					ExpressionAttributeNames:  map[string]string{"#a": "a"},
					ExpressionAttributeValues: map[string]types.AttributeValue{":a": &types.AttributeValueMemberBOOL{}},
				})
				return err
			}
			expect := func(arrived bool, when string) {
				t.Helper()
				synctest.Wait()
				if got := s.db.Item(simulatedTable, itemKey("a")) != nil; got != arrived {
					t.Errorf("%d, %s: the request has arrived: %v, %s", i, c.kind, got, when)
				}
			}
			line := s.lines["1"]
			const lasts = 2 * dynamoLease
			trouble, _, err := tableTroubleOf(c.kind, c.pick, lasts)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			end := line.afflict(trouble)
			if err := probe(0, "of the other"); err != nil {
				t.Errorf("%s: the other slot: %v", c.kind, err)
			}
			c.check(t, probe(1, "a"))
			if c.once {
				if err := probe(1, "again"); err != nil {
					t.Errorf("%s hits more than one request: %v", c.kind, err)
				}
			}
			expect(c.arrives == atOnce, "before the end")
			time.Sleep(lasts - time.Since(began))
			_ = end(t.Context()) // it cannot fail
			if err := probe(1, "later"); err != nil {
				t.Errorf("%s: afterwards: %v", c.kind, err)
			}
			expect(c.arrives != never, "after the end")
		})
	}
}

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
