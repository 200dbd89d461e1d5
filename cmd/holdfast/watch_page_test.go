package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

var pageTime = time.Date(2026, 2, 3, 4, 5, 6, 0, time.Local)

// TestPage tests the rows of the page, and those that are left with less room.
func TestPage(t *testing.T) {
	sharp := sight{info: holdfast.Info{
		Key: "orders/42", Held: true, Holder: holdfast.Holder{Owner: "worker-1", Token: 7, Lease: 20 * time.Second, Data: []byte("x\x1b")},
		Queue: []holdfast.Waiter{{Owner: "a"}, {Owner: "b", Data: []byte("d")}},
	}}
	down, trouble := sharp, sharp
	down.down = pageTime
	trouble.trouble = errors.New("no way\x1b")
	whole := []string{
		"key        orders/42", "held by    worker-1", "token      7", "lease      20s", `data       "x\x1b"`, "waiting 1  a, since -", "waiting 2  b, since -, data d",
	}
	const foot = "connected; q ends"
	for _, c := range []struct {
		sight
		height int
		want   []string
	}{
		{sharp, 9, append(slices.Clone(whole), "", foot)},
		{sharp, 8, append(slices.Clone(whole), foot)},
		{sharp, 7, append(slices.Clone(whole[:5]), "and 2 more lines", foot)},
		{sharp, 1, []string{"and 7 more lines"}},
		{sight{info: holdfast.Info{Key: "k"}}, 4, []string{"key      k", "held by  nobody", "", foot}},
		{down, 3, []string{"key        orders/42", "and 6 more lines", "disconnected since 04:05:06; this may be outdated"}},
		{trouble, 3, []string{"key        orders/42", "and 6 more lines", "this may be outdated: no way�"}},
		{sight{info: shared(4)}, 14, []string{
			"key        k", "permits    3 of 4", "held by    web1", "token      7", "held by    web2", "token      8", "data       data",
			"held by    web3", "token      9", "waiting 1  web4, since -", "waiting 2  web5, since -, as a reader",
			"waiting 3  web6, since -, as a permit of 3", "", foot,
		}},
	} {
		if got := layOut(c.sight, c.height); !slices.Equal(got, c.want) {
			t.Errorf("%d rows show\n%s\nwant\n%s", c.height, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	for height := range 30 {
		if n := len(layOut(sharp, height)); n != max(height, 1) {
			t.Errorf("%d rows for a height of %d", n, height)
		}
	}
}

// TestFit tests text that is wider than the screen: characters of two columns, and accents that take none.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"abcde", 5, "abcde"},
		{"abcdef", 5, "abcd…"},
		{"abcdef", 1, "…"},
		{"漢字漢字", 8, "漢字漢字"},
		{"漢字漢字", 7, "漢字漢…"},
		{"漢字漢字", 6, "漢字…"}, // five columns: half a character does not exist
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
	} {
		if got := fit(c.text, c.width); got != c.want {
			t.Errorf("fit(%q, %d) is %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

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
		{shared(0), "web4", "waiting for k, place 1 of 3, held by web1 and 2 more (reader)"},
	} {
		if got := waitingFor(test.info, test.owner); got != test.want {
			t.Errorf("waitingFor(%+v, %q) is %q, want %q", test.info, test.owner, got, test.want)
		}
	}
}
