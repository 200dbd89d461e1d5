package holdfast

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// How a hold ends. [Lock.Err] matches exactly one of the first three; a lost one matches its cause as well.
var (
	ErrReleased   = errors.New("released by the holder") // the holder ended it, by Release or by closing its client
	ErrTTLExpired = errors.New("TTL expired")            // the limit set by [WithTTL] or [Lock.Extend] was reached
	ErrLost       = driver.ErrLost                       // something else ended it; a [*LostError] says what
)

// Why a hold was lost: the causes within a [*LostError].
var (
	// ErrSessionExpired: the ZooKeeper session ended, or could no longer be shown to be alive, which to the holder is the same.
	ErrSessionExpired = driver.ErrSessionExpired
	ErrLeaseExpired   = driver.ErrLeaseExpired // the lease could not be renewed in time
	ErrBroken         = driver.ErrBroken       // the grant has been removed from the engine, by Break or by hand
	// ErrReclaimed: a client with the same owner name used WithReclaim. Where a holder finds only that its grant is gone, it sees
	// ErrBroken instead: on ZooKeeper if it was cut off or had held the lock for milliseconds, on DynamoDB if it shared the key.
	ErrReclaimed = driver.ErrReclaimed
	ErrTakenOver = driver.ErrTakenOver // the engine says that another has the key
	// ErrClockJump: the wall clock went forward by more than was left of the lease, so the machine may have been suspended past
	// its end.
	ErrClockJump = driver.ErrClockJump
)

// Why a call failed.
var (
	ErrHeld = driver.ErrHeld // the key is held; a [*HeldError] says by whom
	// ErrInvalid: bad input, refused before anything was sent; an [*InvalidError] names the field and the limit.
	ErrInvalid = driver.ErrInvalid
	// ErrNames: on ZooKeeper, a node ahead belongs to a program that ignores this client's names; a zklock.NamesError has the node.
	ErrNames        = driver.ErrNames
	ErrClosed       = driver.ErrClosed       // the client has been closed
	ErrDisconnected = driver.ErrDisconnected // the engine could not be reached
	ErrDenied       = driver.ErrDenied       // the engine refused the client's credentials
	ErrChanged      = driver.ErrChanged      // the grant to be broken, or asked for, is not the present one any more
	// ErrReleasePending: the lock has ended for its holder, but the engine has not confirmed it yet; delivery goes on in the
	// background.
	ErrReleasePending = errors.New("release not confirmed yet")
	ErrRunning        = errors.New("the election is running") // the election's Run has been called, and has not returned
	// ErrOverdue: lead goes on although its term has ended; see [Election.Check].
	ErrOverdue = errors.New("lead has outlived its term")
)

// How a term of an [Election] ends while its lock is live.
var (
	ErrResigned = errors.New("resigned") // the cause of lead's ctx after [Election.Resign]
	// ErrAsked is the cause of lead's ctx when another client has asked for the lock, by [Client.Ask], and
	// ElectionOptions.StepDownWhenAsked is set.
	ErrAsked     = errors.New("asked to step down")
	ErrUnfit     = errors.New("not fit to lead")             // the cause of lead's ctx when ElectionOptions.Fit has failed
	ErrWithdrawn = errors.New("withdrawn from the election") // what lead returns to end Run
)

// A LostError says which hold was lost, and why.
type LostError struct {
	Key   string
	Owner string
	Token Token
	Cause error // ErrSessionExpired, ErrLeaseExpired, ErrBroken, ErrReclaimed, ErrTakenOver or ErrClockJump
}

// Error implements error.
func (e *LostError) Error() string {
	return fmt.Sprintf("lock %q (token %d) lost: %v", e.Key, e.Token, e.Cause)
}

// Unwrap makes errors.Is match ErrLost and the cause.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Cause} }

// lossCause returns the cause of ErrLost that an error of the engine matches, or nil.
func lossCause(err error) error {
	for _, cause := range []error{ErrSessionExpired, ErrLeaseExpired, ErrReclaimed, ErrTakenOver, ErrBroken} {
		if errors.Is(err, cause) {
			return cause
		}
	}
	return nil
}

// A HeldError says who holds a key that was wanted. It matches [ErrHeld].
//
// Fields: Key, Holder (an [Info]; only Key is set where there was no time to ask), LastHeard, Own (a lock of this client is in the way).
type HeldError = driver.HeldError

// An InvalidError says which input was refused: its Field is named as the caller knows it ("key", "TTL",
// "Options.SessionTimeout"), its Reason is the rule that the input broke, with its limit. It matches [ErrInvalid].
//
// Fields: Field, Reason.
type InvalidError = driver.InvalidError

// failed adds the operation and the key to an error; nil stays nil.
func failed(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("holdfast: %s %w", op, &keyError{key, err})
}

// A keyError says what failed on which key. Its text has the key once, although some errors have it, too.
type keyError struct {
	key string
	err error
}

func (e *keyError) Error() string {
	text := e.err.Error()
	if lost, ok := e.err.(*LostError); ok {
		text = fmt.Sprintf("%v: %v", ErrLost, lost.Cause)
	}
	return fmt.Sprintf("%q: %s", clip(e.key), strings.Replace(text, strconv.Quote(e.key)+" is ", "", 1))
}

func (e *keyError) Unwrap() error { return e.err }

// clip keeps a key that may be of any size out of error texts.
func clip(key string) string {
	const most = 80
	if len(key) <= most {
		return key
	}
	return key[:most] + "..."
}
