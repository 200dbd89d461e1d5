package zkconn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
)

// errBusy is the answer of a server that was too busy for a request and has not carried it out
// (zookeeper.throttled_op_wait_time, KeeperException.Code.THROTTLEDOP).
var errBusy = errors.New("the server is too busy for this request")

// errCreatedBefore is the answer to a creation of a sequential znode that there is one already, though each has a number of its own. A
// server that shuts down says so of a transaction that it has carried out twice: as it was committed, and as it was read from the log
// (ZKDatabase.fastForwardDataBase).
var errCreatedBefore = errors.New("the server says that the znode had been created before")

// ErrSlow is why a session cannot be proven to be alive: its answers take too long for that.
var ErrSlow = errors.New("answers are too slow for the session timeout")

const codeSessionExpired = -112

// UnknownOutcome reports whether a request may or may not have been carried out.
func UnknownOutcome(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrClosing) || errors.Is(err, errCreatedBefore)
}

// transient reports whether a request may be tried again: on a new connection, or later.
func transient(err error) bool {
	return UnknownOutcome(err) || slices.ContainsFunc([]error{
		zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved, errBusy, ErrSlow,
	}, func(e error) bool { return errors.Is(err, e) })
}

// StepError says what was attempted on which znode, and translates what go-zookeeper says into what holdfast says.
func StepError(step, path string, err error) error {
	if err == nil {
		return nil
	}
	var code int32
	if n, _ := fmt.Sscanf(err.Error(), "unknown error: %d", &code); n == 1 { // go-zookeeper does not know the code
		err = codeError(code)
	}
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed):
		err = fmt.Errorf("%w: %w", driver.ErrDenied, err)
	case errors.Is(err, zk.ErrInvalidACL):
		err = fmt.Errorf("%w: %w", driver.Invalid("Options.ACL", "the server does not take it"), err)
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		err = fmt.Errorf("%w: %w", driver.Invalid("key", "a znode on its path is ephemeral and can have no children"), err)
	case transient(err):
		err = fmt.Errorf("%w: %w", driver.ErrDisconnected, err)
	}
	return fmt.Errorf("zookeeper: %s %s: %w", step, path, err)
}

// Disconnected is what a call returns that ctx ends while it waits for a server.
func Disconnected(ctx context.Context) error {
	return fmt.Errorf("%w: %w", driver.ErrDisconnected, driver.ContextError(ctx))
}

// AsDisconnected adds to an error that ctx has caused that a server was being waited for.
func AsDisconnected(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, driver.ErrDisconnected) {
		return err
	}
	return fmt.Errorf("zookeeper: %w: %w", driver.ErrDisconnected, err)
}

// codes are the names of all error codes of a server: KeeperException.Code.
var codes = map[int32]string{
	-1: "SYSTEMERROR", -2: "RUNTIMEINCONSISTENCY", -3: "DATAINCONSISTENCY", -4: "CONNECTIONLOSS", -5: "MARSHALLINGERROR",
	-6: "UNIMPLEMENTED", -7: "OPERATIONTIMEOUT", -8: "BADARGUMENTS", -12: "UNKNOWNSESSION", -13: "NEWCONFIGNOQUORUM",
	-14: "RECONFIGINPROGRESS", -100: "APIERROR", -101: "NONODE", -102: "NOAUTH", -103: "BADVERSION", -108: "NOCHILDRENFOREPHEMERALS",
	-110: "NODEEXISTS", -111: "NOTEMPTY", -112: "SESSIONEXPIRED", -113: "INVALIDCALLBACK", -114: "INVALIDACL", -115: "AUTHFAILED",
	-118: "SESSIONMOVED", -119: "NOTREADONLY", -120: "EPHEMERALONLOCALSESSION", -121: "NOWATCHER", -122: "REQUESTTIMEOUT",
	-123: "RECONFIGDISABLED", -124: "SESSIONCLOSEDREQUIRESASLAUTH", -125: "QUOTAEXCEEDED", -127: "THROTTLEDOP",
}

// meanings are the errors of codes whose names do not say enough. Those by which a server refuses the whole connection match driver.ErrDenied.
var meanings = map[int32]error{
	codeTooLong: errTooLong,
	-115:        fmt.Errorf("%w: the server does not accept the credentials", driver.ErrDenied),
	-120: errors.New("the server gives local sessions, which have no ephemeral znodes: turn localSessionsEnabled off, " +
		"or localSessionsUpgradingEnabled on"),
	-124: fmt.Errorf("%w: the server serves only sessions that have authenticated", driver.ErrDenied),
	-127: errBusy,
}

// codeError is the error of a code that is not 0.
func codeError(code int32) error {
	if err := meanings[code]; err != nil {
		return err
	}
	return fmt.Errorf("the server answers %s (%d)", codes[code], code)
}
