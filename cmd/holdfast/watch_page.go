package main

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/screen"
)

// page shows what is known on the whole screen.
type page struct{ screen *screen.Screen }

func (p *page) show(s sight) error {
	width, height := p.screen.Size()
	return p.screen.Draw(layOut(s, width, height, time.Now()))
}

// leastHeight is of a page with a head and a foot; less is one row or two.
const leastHeight = 4

// layOut makes a page of a sight. As the screen gets smaller, first blank rows go,
// then the end of the queue, then what is least about the holder; one row tells
// who holds the key, or that nobody knows.
func layOut(s sight, width, height int, now time.Time) []screen.Row {
	state := condition(s, width, now)
	if height < leastHeight {
		if height == 1 && state.Reverse {
			return []screen.Row{state}
		}
		return []screen.Row{{Text: summary(s, now), Bold: true}, state}
	}
	room := height - 2 // between head and foot
	holder, queue := holderRows(s.info, width, now), queueRows(s.info.Queue, width, now)
	holder = holder[:min(len(holder), room-min(1, len(queue)))]
	queue = shorten(queue, room-len(holder))
	spare := room - len(holder) - len(queue)

	rows := []screen.Row{{Text: plain(s.info.Key), Bold: true}}
	if spare > 0 {
		rows = append(rows, screen.Row{})
	}
	rows = append(rows, holder...)
	if spare > 1 && len(queue) > 0 {
		rows = append(rows, screen.Row{})
	}
	rows = append(rows, queue...)
	for len(rows) < height-1 {
		rows = append(rows, screen.Row{})
	}
	return append(rows, state)
}

// summary is all in one row.
func summary(s sight, now time.Time) string {
	if !s.info.Held {
		return "free: " + plain(s.info.Key)
	}
	text := "held" + age(", ", s.info.Since, now)
	if s.info.Since.IsZero() && !s.info.QueuedAt.IsZero() {
		text += age(", queued ", s.info.QueuedAt, now) + " ago"
	}
	if n := len(s.info.Queue); n > 0 {
		text += fmt.Sprintf(", %d waiting", n)
	}
	return text + ": " + plain(s.info.Owner)
}

// condition is the foot: how far what is shown can be relied upon.
func condition(s sight, width int, now time.Time) screen.Row {
	of := "what is shown is of " + clock(s.looked)
	switch {
	case !s.down.IsZero():
		return screen.Row{Text: fmt.Sprintf("disconnected since %s%s; %s", clock(s.down), age(", ", s.down, now), of), Reverse: true}
	case s.trouble != nil:
		return screen.Row{Text: of + "; " + message(s.trouble), Reverse: true}
	}
	left, right := "connected, as of "+clock(s.looked), "q ends"
	if screen.Width(left)+len(right)+2 > width {
		return screen.Row{Text: left}
	}
	return screen.Row{Text: screen.Pad(left, width-len(right)) + right}
}

// holderRows tell of the holder.
func holderRows(info holdfast.Info, width int, now time.Time) []screen.Row {
	if !info.Held {
		return []screen.Row{{Text: "free", Bold: true}}
	}
	rows := []screen.Row{{Text: "held by  " + plain(info.Owner), Bold: true}}
	tell := func(t time.Time) string { return moment(t) + age(", ", t, now) }
	data := func(data string) string { return excerpt(data, width) }
	for _, d := range details(info, tell, data) {
		rows = append(rows, screen.Row{Text: screen.Pad(d[0], len("held by  ")) + d[1]})
	}
	return rows
}

// queueRows tell of those who wait, after a row that says how many.
func queueRows(queue []holdfast.Waiter, width int, now time.Time) []screen.Row {
	if len(queue) == 0 {
		return nil
	}
	rows := []screen.Row{{Text: fmt.Sprintf("waiting  %d", len(queue)), Bold: true}}
	digits := len(strconv.Itoa(len(queue)))
	for i, w := range queue {
		text := fmt.Sprintf("%*d  %-7s  %s", digits, i+1, age("", w.Since, now), plain(w.Owner))
		if len(w.Data) > 0 {
			text += "  " + excerpt(string(w.Data), width)
		}
		rows = append(rows, screen.Row{Text: text})
	}
	return rows
}

// shorten makes a queue fit into some rows.
func shorten(queue []screen.Row, room int) []screen.Row {
	switch {
	case room <= 0:
		return nil
	case len(queue) <= room:
		return queue
	case room == 1:
		return queue[:1]
	}
	shown := queue[: room-1 : room-1]
	return append(shown, screen.Row{Text: fmt.Sprintf("and %d more", len(queue)-len(shown))})
}

// excerpt makes foreign data harmless. No more is looked at than may fit.
func excerpt(data string, width int) string {
	const mostBytes = 4 // of a character that takes a column
	if most := mostBytes * width; len(data) > most {
		for most > 0 && !utf8.RuneStart(data[most]) {
			most--
		}
		data = data[:most]
	}
	return plain(data)
}

// clock is the time of day.
func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }

// age tells how long ago something was, by the clock of this machine, in a few
// characters, after something to begin with; "" if it is not known.
func age(before string, since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	s := int64(max(0, now.Sub(since)) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%s%ds", before, s)
	case s < 3600:
		return fmt.Sprintf("%s%dm%02ds", before, s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%s%dh%02dm", before, s/3600, s/60%60)
	}
	return fmt.Sprintf("%s%dd%02dh", before, s/(24*3600), s/3600%24)
}
