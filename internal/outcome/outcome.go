// Package outcome names the outcomes of events in one word, for labels of metrics. The collectors are modules of their own,
// which may be older or newer than this one: do not change a signature here.
package outcome

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast"
)

// Of returns the word for a Granted or Failed, the end of a lock, a TermEnded or a Heartbeat; "" for another event.
func Of(e holdfast.Event) string {
	switch e.Kind {
	case holdfast.Granted:
		return "granted"
	case holdfast.Failed:
		return word(e.Err, "error", failures)
	case holdfast.Released, holdfast.TTLExpired, holdfast.Lost:
		return End(e.Err)
	case holdfast.TermEnded:
		lost := (*holdfast.LostError)(nil)
		switch {
		case errors.As(e.Cause, &lost) && (lost.Key != e.Key || lost.Token != e.Token): // of another lock, and with it the ctx of Run
			return "canceled"
		case e.Cause != nil:
			return word(e.Cause, "canceled", terms)
		case e.Err == nil:
			return "stepped_down"
		case errors.Is(e.Err, holdfast.ErrWithdrawn):
			return "withdrawn"
		}
		return "failed"
	case holdfast.Heartbeat:
		if e.Err == nil {
			return "ok"
		}
		return word(e.Err, "error", heartbeats)
	}
	return ""
}

// End returns the word for the end of a lock, given what its Err returns.
func End(err error) string { return word(err, "lost", endings) }

// A kind is an error and its word.
type kind struct {
	err  error
	word string
}

var failures = []kind{
	{holdfast.ErrClosed, "closed"},
	{holdfast.ErrDenied, "denied"},
	{holdfast.ErrInvalid, "invalid"},
	{holdfast.ErrNames, "names"},
	{holdfast.ErrDisconnected, "disconnected"},
	{context.Canceled, "canceled"},
	{holdfast.ErrReclaimed, "reclaimed"},
	{holdfast.ErrHeld, "held"},
	{context.DeadlineExceeded, "timeout"},
}

var endings = []kind{
	{holdfast.ErrReleased, "released"},
	{holdfast.ErrTTLExpired, "ttl_expired"},
	{holdfast.ErrSessionExpired, "session_expired"},
	{holdfast.ErrLeaseExpired, "lease_expired"},
	{holdfast.ErrReclaimed, "reclaimed"},
	{holdfast.ErrTakenOver, "taken_over"},
	{holdfast.ErrBroken, "broken"},
	{holdfast.ErrClockJump, "clock_jump"},
}

var terms = slices.Concat([]kind{
	{holdfast.ErrResigned, "resigned"},
	{holdfast.ErrAsked, "asked"},
	{holdfast.ErrUnfit, "unfit"},
	{holdfast.ErrClosed, "closed"},
}, endings)

var heartbeats = []kind{
	{holdfast.ErrDisconnected, "disconnected"},
	{holdfast.ErrDenied, "denied"},
	{holdfast.ErrBroken, "lost"},
	{holdfast.ErrReclaimed, "lost"},
	{holdfast.ErrTakenOver, "lost"},
}

// word returns the word of the first kind that err matches.
func word(err error, other string, kinds []kind) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.word
		}
	}
	return other
}
