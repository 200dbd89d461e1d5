package holdfast

import (
	"context"
	"errors"
	"slices"
)

// A kind is an error that Result has a word for.
type kind struct {
	err  error
	word string
}

// Result says in one word what has come of an acquisition, for labels of metrics. It
// is the first of these that applies, and has no meaning in Started:
//
//	granted       a lock
//	closed        the client was closed
//	denied        the engine refused the credentials
//	invalid       the engine refused the input
//	names         a program that ignores this client's names uses the key
//	disconnected  the engine could not be asked, or did not answer
//	canceled      its ctx was canceled
//	reclaimed     somebody claimed its place by WithReclaim
//	held          another has it, and there was no more time to wait, or none at all
//	timeout       the deadline of its ctx passed
//	error         anything else
func (a Acquisition) Result() string { return wordFor(a.Err, "granted", "error", failures) }

var failures = []kind{
	{ErrClosed, "closed"},
	{ErrDenied, "denied"},
	{ErrInvalid, "invalid"},
	{ErrNames, "names"},
	{ErrDisconnected, "disconnected"},
	{context.Canceled, "canceled"}, // before the next, for which another lock may have been lost, and ctx with it
	{ErrReclaimed, "reclaimed"},
	{ErrHeld, "held"},
	{context.DeadlineExceeded, "timeout"},
}

// Result says in one word how a hold has ended, for labels of metrics: "released",
// "ttl_expired", or why it was lost: "session_expired", "lease_expired", "broken",
// "reclaimed", "taken_over", "clock_jump", and "lost" for anything else.
func (e Ending) Result() string { return wordFor(e.Err, "released", "lost", endings) }

var endings = []kind{
	{ErrReleased, "released"},
	{ErrTTLExpired, "ttl_expired"},
	{ErrSessionExpired, "session_expired"},
	{ErrLeaseExpired, "lease_expired"},
	{ErrReclaimed, "reclaimed"},
	{ErrTakenOver, "taken_over"},
	{ErrBroken, "broken"},
	{ErrClockJump, "clock_jump"},
}

// Result says in one word how a term has ended, for labels of metrics, and has no meaning
// in TermBegan: "stepped_down", "withdrawn" or "failed" as lead returned nil, ErrWithdrawn
// or another error, or panicked. If the term had ended before: "resigned", "asked", "unfit",
// "closed" with the client, a word of [Ending.Result] if the lock had ended, and
// "canceled" with the ctx of Run.
func (t Term) Result() string {
	lost := (*LostError)(nil)
	switch {
	case t.canceled:
		return "canceled"
	case errors.As(t.Cause, &lost) && (lost.Key != t.Key || lost.Token != t.Token): // of another lock, and with it the ctx of Run
		return wordFor(t.Cause, "", "canceled", whileLive)
	case t.Cause != nil:
		return wordFor(t.Cause, "", "canceled", terms)
	case errors.Is(t.Err, ErrWithdrawn):
		return "withdrawn"
	}
	return wordFor(t.Err, "stepped_down", "failed", nil)
}

var (
	whileLive = []kind{{ErrResigned, "resigned"}, {ErrAsked, "asked"}, {ErrUnfit, "unfit"}, {ErrClosed, "closed"}}
	terms     = slices.Concat(whileLive, endings)
)

// Result says in one word what has come of a heartbeat, for labels of metrics: "ok",
// "disconnected", "denied", "lost" if there was nothing left to be kept alive, and
// "error" for anything else.
func (h Heartbeat) Result() string { return wordFor(h.Err, "ok", "error", heartbeats) }

var heartbeats = []kind{
	{ErrDisconnected, "disconnected"},
	{ErrDenied, "denied"},
	{ErrBroken, "lost"},
	{ErrReclaimed, "lost"},
	{ErrTakenOver, "lost"},
}

func wordFor(err error, none, other string, kinds []kind) string {
	if err == nil {
		return none
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.word
		}
	}
	return other
}
