package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-go/holdfast"
)

// lines prints what is known as a line, and again whenever it has changed.
type lines struct {
	app   *app
	begun bool
	last  sight // as printed last
}

func (l *lines) show(s sight) error {
	if l.begun && !s.differs(l.last) {
		return nil
	}
	l.begun, l.last = true, s
	now := time.Now()
	if l.app.json() {
		return l.app.printJSON(newSightJSON(s, now))
	}
	_, err := fmt.Fprintf(l.app.out, "%s %s\n", now.Format("2006-01-02T15:04:05.000Z07:00"), s.line())
	return err
}

// differs reports whether two sights tell different things.
func (s sight) differs(t sight) bool {
	switch {
	case s.down.IsZero() != t.down.IsZero():
		return true
	case !s.down.IsZero():
		return false // what cannot be seen does not change
	case s.trouble != nil || t.trouble != nil:
		return message(s.trouble) != message(t.trouble)
	}
	return differ(s.info, t.info)
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return line(err.Error())
}

func differ(a, b holdfast.Info) bool {
	return a.Held != b.Held || a.Owner != b.Owner || a.Token != b.Token || a.Grant != b.Grant ||
		!a.Since.Equal(b.Since) || !a.QueuedAt.Equal(b.QueuedAt) || a.Lease != b.Lease || string(a.Data) != string(b.Data) ||
		!slices.EqualFunc(a.Queue, b.Queue, func(v, w holdfast.Waiter) bool {
			return v.Owner == w.Owner && v.Since.Equal(w.Since) && string(v.Data) == string(w.Data)
		})
}

// line tells a sight in one line.
func (s sight) line() string {
	var b strings.Builder
	field := func(name, value string) { fmt.Fprintf(&b, " %s=%s", name, value) }
	info := s.info
	switch {
	case !s.down.IsZero():
		b.WriteString("disconnected")
	case s.trouble != nil:
		b.WriteString("unknown")
	case info.Held:
		b.WriteString("held")
	default:
		b.WriteString("free")
	}
	field("key", word(info.Key))
	switch {
	case !s.down.IsZero():
		return b.String()
	case s.trouble != nil:
		field("error", word(message(s.trouble)))
		return b.String()
	}
	if info.Held {
		field("owner", word(info.Owner))
		for _, d := range details(info, moment, word) {
			field(d[0], d[1])
		}
	}
	if n := len(info.Queue); n > 0 {
		field("waiting", strconv.Itoa(n))
		field("next", word(info.Queue[0].Owner))
	}
	return b.String()
}

// word returns foreign text as one word: quoted like a Go string unless it is
// plain, without spaces, equals signs and quotes.
func word(s string) string {
	if p := plain(s); p != s || strings.ContainsFunc(s, func(r rune) bool { return r == '=' || unicode.IsSpace(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// sightJSON is a line of watch in JSON. The fields of a lock are there while the
// engine answers.
type sightJSON struct {
	Time      time.Time `json:"time"`
	Connected bool      `json:"connected"`
	Error     string    `json:"error,omitempty"`
	Key       string    `json:"key"`
	*lockJSON
}

func newSightJSON(s sight, now time.Time) sightJSON {
	j := sightJSON{Time: now.UTC(), Connected: s.down.IsZero(), Key: s.info.Key}
	switch {
	case !j.Connected:
	case s.trouble != nil:
		j.Error = message(s.trouble)
	default:
		l := newLockJSON(s.info)
		j.lockJSON = &l
	}
	return j
}
