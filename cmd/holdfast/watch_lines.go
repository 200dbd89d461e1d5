package main

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// stamp is the form of the times of lines.
const stamp = "2006-01-02T15:04:05.000Z07:00"

// lines prints a line at first and for each change.
type lines struct {
	app  *app
	last any // as changes printed last
}

func (l *lines) show(s sight) error {
	if now := s.essence(); !reflect.DeepEqual(now, l.last) {
		l.last = now
		return l.app.print(newSightJSON(s, time.Now()), "%s %s", time.Now().Format(stamp), s.line())
	}
	return nil
}

// essence is the part of a sight whose changes are printed, without heartbeats.
func (s sight) essence() any {
	switch {
	case !s.down.IsZero():
		return "disconnected"
	case s.trouble != nil:
		return message(s.trouble)
	}
	info := s.info
	info.LastHeard, info.Holders = time.Time{}, slices.Clone(info.Holders)
	for i := range info.Holders {
		info.Holders[i].LastHeard = time.Time{}
	}
	return [2]any{info, s.dead()}
}

// dead returns how many holders seem to be dead.
func (s sight) dead() (n int) {
	for grant := range s.info.Each() {
		if grant.SeemsDead(time.Now()) {
			n++
		}
	}
	return n
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return line(err.Error())
}

// line formats a sight as one line.
func (s sight) line() string {
	info, key := s.info, " key="+word(s.info.Key)
	switch {
	case !s.down.IsZero():
		return "disconnected" + key
	case s.trouble != nil:
		return "unknown" + key + " error=" + word(message(s.trouble))
	}
	text := "free" + key
	if info.Held {
		text = "held" + key + " owner=" + word(info.Owner)
		for _, d := range details(info, moment, word) {
			text += " " + d[0] + "=" + d[1]
		}
		if info.Shared {
			text += fmt.Sprintf(" holders=%d", len(info.Holders))
		}
		if info.Limit > 0 {
			text += fmt.Sprintf(" limit=%d", info.Limit)
		}
		if n := s.dead(); n > 0 {
			text += fmt.Sprintf(" seems_dead=%d", n)
		}
	}
	if n := len(info.Queue); n > 0 {
		text += fmt.Sprintf(" waiting=%d next=%s", n, word(info.Queue[0].Owner))
	}
	if info.Stale {
		text += " stale=true"
	}
	return text
}

// word makes foreign text one word: it quotes text like a Go string unless it is plain and has no spaces, equals signs or quotes.
func word(s string) string {
	if p := plain(s); p != s || strings.ContainsFunc(s, func(r rune) bool { return r == '=' || unicode.IsSpace(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// sightJSON is a line of watch in JSON. It has the fields of a lock while the engine answers.
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
