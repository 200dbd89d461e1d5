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
