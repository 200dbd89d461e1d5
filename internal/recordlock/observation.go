package recordlock

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// An observation is what a client has seen of a record, and since when each beat in it has been the same.
type observation struct {
	known bool
	rec   Record
	since map[string]driver.Instant // by the beats of the holders and of the intent: after the first read that showed it
}

// update notes a record that was read before now.
func (o *observation) update(rec Record, now driver.Instant) {
	since := make(map[string]driver.Instant, len(rec.Holders)+1)
	note := func(beat string) {
		if at, ok := o.since[beat]; ok {
			since[beat] = at
		} else {
			since[beat] = now
		}
	}
	for _, h := range rec.Holders {
		note(h.Beat)
	}
	if rec.Intent.Grant != "" {
		note(rec.Intent.Beat)
	}
	o.known, o.rec, o.since = true, rec, since
}

// left is how long a holder has to stay silent after a moment until its grant is over.
func (e *Engine) left(o *observation, h *Holder, now driver.Instant) time.Duration {
	switch {
	case e.orphan(h.Grant):
		return 0
	case h.Lease == Forever:
		return Forever
	}
	left := h.Lease - now.Sub(o.since[h.Beat])
	if e.opts.TrustLocalTime && !h.Touched.IsZero() {
		left = min(left, h.Touched.Add(h.Lease+e.host.Margin(h.Lease)).Sub(now.Wall))
	}
	return left
}

// intentLeft is the same for an intent; it is 0 if there is none.
func (e *Engine) intentLeft(o *observation, now driver.Instant) time.Duration {
	i := &o.rec.Intent
	if i.Grant == "" || e.orphan(i.Grant) {
		return 0
	}
	return i.Lease - now.Sub(o.since[i.Beat])
}

// nextEnd is the time until the next grant or intent of an observation is over; it is at most most.
func (e *Engine) nextEnd(o *observation, now driver.Instant, most time.Duration) time.Duration {
	for i := range o.rec.Holders {
		if left := e.left(o, &o.rec.Holders[i], now); left > 0 {
			most = min(most, left)
		}
	}
	if left := e.intentLeft(o, now); left > 0 {
		most = min(most, left)
	}
	return most
}

// live returns the holders whose grants are not over at a moment.
func (e *Engine) live(o *observation, now driver.Instant) (live []Holder) {
	for _, h := range o.rec.Holders {
		if e.left(o, &h, now) > 0 {
			live = append(live, h)
		}
	}
	return live
}
