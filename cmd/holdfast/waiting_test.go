package main

import (
	"testing"

	"github.com/holdfast-go/holdfast"
)

// TestWaitingFor checks that the message has only known facts, and no place in the queue that
// may be another client's.
func TestWaitingFor(t *testing.T) {
	queue := []holdfast.Waiter{{Owner: "a"}, {Owner: "me"}, {Owner: "twice"}, {Owner: "twice"}, {}}
	for _, test := range []struct {
		info  holdfast.Info
		owner string
		want  string
	}{
		{holdfast.Info{Key: "k"}, "me", "waiting for k"},
		{holdfast.Info{Key: "k", Held: true, Holder: holdfast.Holder{Owner: "x\x1b"}}, "me", `waiting for k, held by "x\x1b"`},
		{holdfast.Info{Key: "k", Held: true, Holder: holdfast.Holder{Owner: "x", Token: 7, Since: pageTime}}, "me", "waiting for k, held by x (token 7) since " + moment(pageTime)},
		{holdfast.Info{Key: "k", Held: true, Holder: holdfast.Holder{Owner: "x"}, Queue: queue}, "me", "waiting for k, place 2 of 5, held by x"},
		{holdfast.Info{Key: "k", Held: true, Holder: holdfast.Holder{Owner: "x"}, Queue: queue}, "twice", "waiting for k, held by x"},
		{holdfast.Info{Key: "k", Held: true, Holder: holdfast.Holder{Owner: "x"}, Queue: queue}, "", "waiting for k, held by x"},
		{holdfast.Info{Key: "k", Queue: queue}, "a", "waiting for k, place 1 of 5"},
	} {
		if got := waitingFor(test.info, test.owner); got != test.want {
			t.Errorf("waitingFor(%+v, %q) is %q, want %q", test.info, test.owner, got, test.want)
		}
	}
}
