package main

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/screen"
)

// page shows a sight on the whole screen.
type page struct{ screen *screen.Screen }

func (p *page) show(s sight) error {
	width, height := p.screen.Size()
	return p.screen.Draw(layOut(s, width, height, time.Now()))
}

// minHeight is the height of a page with a head and a foot; a smaller one has one or two rows.
const minHeight = 4

// layOut turns a sight into a page. With less room it drops blank rows first, then the end of the
// queue, then details of the holder. A single row says who holds the key, or that nobody knows.
func layOut(s sight, width, height int, now time.Time) []screen.Row {
	state := condition(s, width, now)
	if height < minHeight {
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

// summary says everything in one row.
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
	return text + ": " + holders(s.info)
}

// condition is the foot, which says how current the page is.
func condition(s sight, width int, now time.Time) screen.Row {
	switch {
	case !s.down.IsZero():
		return screen.Row{Text: fmt.Sprintf("disconnected since %s%s; this may be outdated", clock(s.down), age(", ", s.down, now)), Reverse: true}
	case s.trouble != nil:
		return screen.Row{Text: "this may be outdated: " + message(s.trouble), Reverse: true}
	}
	left, right := "connected", "q ends"
	if screen.Width(left)+len(right)+2 > width {
		return screen.Row{Text: left}
	}
	return screen.Row{Text: screen.Pad(left, width-len(right)) + right}
}

// holderRows describe the holder, or all who share the key.
func holderRows(info holdfast.Info, width int, now time.Time) []screen.Row {
	if !info.Held {
		return []screen.Row{{Text: "free", Bold: true}}
	}
	tell := func(t time.Time) string { return moment(t) + age(", ", t, now) }
	data := func(data string) string { return excerpt(data, width) }
	var rows []screen.Row
	row := func(name, value string, bold bool) {
		rows = append(rows, screen.Row{Text: screen.Pad(name, len("held by  ")) + value, Bold: bold})
	}
	if info.Shared {
		name, value := sharing(info)
		row(name, value, false)
	}
	for grant := range info.Each() {
		row("held by", plain(grant.Owner), true)
		for _, d := range details(grant, tell, data) {
			row(d[0], d[1], false)
		}
	}
	return rows
}

// queueRows describe the waiters, after a row with their number.
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

// shorten fits a queue into some rows.
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

// excerpt makes foreign data harmless. It looks at no more than may fit.
func excerpt(data string, width int) string {
	const maxBytes = 4 // of a character that takes a column
	if most := maxBytes * width; len(data) > most {
		for most > 0 && !utf8.RuneStart(data[most]) {
			most--
		}
		data = data[:most]
	}
	return plain(data)
}

// clock is the time of day.
func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }

// age says in a few characters after a prefix how long ago something was, by this machine's
// clock; "" if that is unknown.
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
