package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/screen"
)

var pageTime = time.Date(2026, 2, 3, 4, 5, 6, 0, time.Local)

func pageSight() sight {
	return sight{
		info: holdfast.Info{
			Key: "orders/42", Held: true, Holder: holdfast.Holder{
				Owner: "worker-1", Token: 7, Lease: 20 * time.Second, Since: pageTime.Add(-72 * time.Second), Data: []byte("x\x1b"),
			},
			Queue: []holdfast.Waiter{
				{Owner: "漢字", Since: pageTime.Add(-59 * time.Second)},
				{Owner: "b", Since: pageTime.Add(-time.Hour), Data: []byte("d")},
				{Owner: "c"},
			},
		},
	}
}

// texts are the rows of a page as a terminal shows them.
func texts(rows []screen.Row, width int) []string {
	var all []string
	for _, r := range rows {
		all = append(all, screen.Cut(r.Text, width))
	}
	return all
}

// TestPage tests what the page shows, and what is left of it with less room.
func TestPage(t *testing.T) {
	since := moment(pageTime.Add(-72 * time.Second))
	foot := screen.Pad("connected", 54) + "q ends"
	whole := []string{
		"orders/42",
		"",
		"held by  worker-1",
		"token    7",
		"since    " + since + ", 1m12s",
		"lease    20s",
		`data     "x\x1b"`,
		"",
		"waiting  3",
		"1  59s      漢字",
		"2  1h00m    b  d",
		"3           c",
	}
	queued := pageSight() // as on ZooKeeper, which does not know the time of the grant
	queued.info.Since, queued.info.QueuedAt = time.Time{}, queued.info.Since
	waited := pageSight()
	waited.info.QueuedAt = pageTime.Add(-time.Hour)
	free := sight{info: holdfast.Info{Key: "k"}}
	down, trouble := pageSight(), pageSight()
	down.down = pageTime.Add(-3 * time.Second)
	trouble.trouble = errors.New("no\nway")
	for _, c := range []struct {
		name          string
		sight         sight
		width, height int
		want          []string
	}{
		{"room to spare", pageSight(), 60, 14, append(slices.Clone(whole), "", foot)},
		{"enough", pageSight(), 60, 13, append(slices.Clone(whole), foot)},
		{"one blank row", pageSight(), 60, 12, append(append(slices.Clone(whole[:7]), whole[8:]...), foot)},
		{"no blank row", pageSight(), 60, 11, slices.Concat(whole[:1], whole[2:7], whole[8:], []string{foot})},
		{"part of the queue", pageSight(), 60, 10, slices.Concat(whole[:1], whole[2:7], whole[8:10], []string{"and 2 more", foot})},
		{"its number", pageSight(), 60, 8, slices.Concat(whole[:1], whole[2:7], whole[8:9], []string{foot})},
		{"part of the holder", pageSight(), 60, 5, slices.Concat(whole[:1], whole[2:4], whole[8:9], []string{foot})},
		{"four", pageSight(), 60, 4, []string{"orders/42", "held by  worker-1", "waiting  3", foot}},
		{"three", pageSight(), 60, 3, []string{"held, 1m12s, 3 waiting: worker-1", foot}},
		{"one", pageSight(), 60, 1, []string{"held, 1m12s, 3 waiting: worker-1"}},
		{"narrow", pageSight(), 12, 5, []string{"orders/42", "held by  wo…", "token    7", "waiting  3", "connected"}},
		{"one column", pageSight(), 1, 4, []string{"…", "…", "…", "…"}},
		{"queued, one row", queued, 60, 1, []string{"held, queued 1m12s ago, 3 waiting: worker-1"}},
		{"queued", queued, 60, 6, []string{"orders/42", "held by  worker-1", "token    7", "queued   " + since + ", 1m12s", "waiting  3", foot}},
		{"waited", waited, 60, 14, slices.Concat(whole[:5],
			[]string{"queued   " + moment(pageTime.Add(-time.Hour)) + ", 1h00m"}, whole[5:], []string{foot})},
		{"free", free, 60, 6, []string{"k", "", "free", "", "", foot}},
		{"free, one row", free, 60, 1, []string{"free: k"}},
		{"disconnected", down, 70, 4, []string{"orders/42", "held by  worker-1", "waiting  3", "disconnected since 04:05:03, 3s; this may be outdated"}},
		{"disconnected, one row", down, 70, 1, []string{"disconnected since 04:05:03, 3s; this may be outdated"}},
		{"trouble", trouble, 70, 4, []string{"orders/42", "held by  worker-1", "waiting  3", "this may be outdated: no way"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := layOut(c.sight, c.width, c.height, pageTime)
			got := texts(rows[:min(len(rows), c.height)], c.width)
			if !slices.Equal(got, c.want) {
				t.Errorf("it shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestPageOfAnySize tests pages of all sizes.
func TestPageOfAnySize(t *testing.T) {
	crowd := pageSight()
	for i := range 1000 {
		crowd.info.Queue = append(crowd.info.Queue, holdfast.Waiter{Owner: fmt.Sprint(i)})
	}
	for _, s := range []sight{{}, pageSight(), crowd} {
		for height := 1; height < 30; height++ {
			for _, width := range []int{1, 2, 10, 80, 500} {
				rows := layOut(s, width, height, pageTime)
				if len(rows) > max(height, 2) || height >= minHeight && len(rows) != height {
					t.Errorf("%d rows for %dx%d", len(rows), width, height)
				}
			}
		}
	}
}

// TestExcerpt checks that data of any size is cut, but never within a character.
func TestExcerpt(t *testing.T) {
	if got := excerpt(strings.Repeat("é", 1000), 10); got != strings.Repeat("é", 20) {
		t.Errorf("it is %q", got)
	}
	if got := excerpt(strings.Repeat("aé", 1000), 10); strings.Contains(got, `\`) {
		t.Errorf("a character was cut in two: %q", got)
	}
	if got := excerpt(strings.Repeat("\x80", 1000), 10); len(got) > 500 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestAge tests ages of all sizes, and clocks that disagree.
func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour:              "0s",
		59 * time.Second:        "59s",
		60 * time.Second:        "1m00s",
		3599 * time.Second:      "59m59s",
		time.Hour:               "1h00m",
		24*time.Hour - 1:        "23h59m",
		24 * time.Hour:          "1d00h",
		1000*time.Hour + 1:      "41d16h",
		90 * time.Minute:        "1h30m",
		25*time.Hour + 59*60e09: "1d01h",
	} {
		if got := age("", pageTime.Add(-d), pageTime); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	if got := age(", ", time.Time{}, pageTime); got != "" {
		t.Errorf("an unknown time is %q old", got)
	}
}
