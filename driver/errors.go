package driver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Sentinels that the errors of an engine match. Package holdfast has the same under the same names, and says what each means to a user.
var (
	// Why a call failed.
	ErrHeld         = errors.New("held by another")
	ErrInvalid      = errors.New("invalid")
	ErrNames        = errors.New("in use by a program that ignores this client's names")
	ErrClosed       = errors.New("client closed")
	ErrDisconnected = errors.New("not connected")
	ErrDenied       = errors.New("permission denied")
	ErrChanged      = errors.New("held by another grant by now")

	// Why [Driver.Observe] has ended although the key can be observed: the engine has lost what it told before.
	ErrHistoryLost = errors.New("the engine was wiped or restored")

	// That a grant is gone, and why: the causes that [Request.Lost], [Lease.End] and the methods of a [Hold] give.
	ErrLost           = errors.New("lock lost")
	ErrSessionExpired = errors.New("session expired")
	ErrLeaseExpired   = errors.New("lease expired")
	ErrBroken         = errors.New("broken by somebody else")
	ErrReclaimed      = errors.New("reclaimed under the same owner name")
	ErrTakenOver      = errors.New("taken over")
	ErrClockJump      = errors.New("clock jumped past the end of the lease") // by a Lease only
)

// A HeldError says who holds a key that was wanted. It matches [ErrHeld].
type HeldError struct {
	Key string
	// Holder describes the grant in the way, or all grants that share the key, with their mode. Only its Key is set where there was
	// no time to ask.
	Holder Info
	// LastHeard is Holder.LastHeard.
	LastHeard time.Time
	Own       bool // a live lock of the same client is in the way; set by holdfast.Client
}

// Held returns a [*HeldError].
func Held(holder Info) error {
	return &HeldError{Key: holder.Key, Holder: holder, LastHeard: holder.LastHeard}
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Holder.Owner == "" {
		return fmt.Sprintf("%q is held by another", e.Key)
	}
	as := ""
	if mode := (Mode{e.Holder.Shared, e.Holder.Limit}); mode.Shared {
		as = mode.String() + ", "
	}
	text := fmt.Sprintf("%q is held by %s (%stoken %d)", e.Key, quoteOwner(e.Holder.Owner), as, e.Holder.Token)
	if n := len(e.Holder.Holders); n > 1 {
		text += fmt.Sprintf(" and %d more", n-1)
	}
	if e.Own {
		text += ", by this client; locks are not re-entrant"
	}
	return text
}

// quoteOwner quotes an owner name for a message. Other programs may have written names that are longer than any of holdfast.
func quoteOwner(name string) string {
	if len(name) <= MaxOwner {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(name[:MaxOwner], ""), len(name))
}

// Unwrap makes errors.Is match ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }

// An InvalidError says which input was refused. It matches [ErrInvalid].
type InvalidError struct {
	Field  string // as the caller knows it: "key", "TTL", "Options.SessionTimeout"
	Reason string // the rule it broke, with its limit
}

// Error implements error.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("invalid %s: %s", e.Field, e.Reason)
}

// Unwrap makes errors.Is match ErrInvalid.
func (e *InvalidError) Unwrap() error { return ErrInvalid }

// Invalid returns an [*InvalidError]; the reason is formatted as by fmt.Sprintf.
func Invalid(field, reason string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(reason, args...)}
}

// ContextError returns what ctx, which is done, ended with: its error, and its cause if that says more.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
