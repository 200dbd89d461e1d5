package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// notSent reports whether a request is known not to have reached a server.
func notSent(err error) bool { return errors.Is(err, zk.ErrNoServer) }

// unknownOutcome reports whether a request may or may not have been carried
// out.
func unknownOutcome(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrClosing)
}

// transient reports whether a request may be tried again, on a new connection.
func transient(err error) bool {
	return notSent(err) || unknownOutcome(err) || sessionOver(err) || errors.Is(err, zk.ErrSessionMoved)
}

// sessionOver reports whether a server refused a request because its session
// has ended. (One that has moved goes on, on a newer connection.)
func sessionOver(err error) bool { return errors.Is(err, zk.ErrSessionExpired) }

// stepError says what was attempted on which znode, and translates what
// go-zookeeper says into what holdfast says.
func stepError(step, path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed):
		return fmt.Errorf("zookeeper: %s %s: %w: %w", step, path, holdfast.ErrDenied, err)
	case errors.Is(err, zk.ErrInvalidACL):
		return fmt.Errorf("zookeeper: %s %s: %w: %w", step, path, driver.Invalid("Options.ACL", "the server does not take it"), err)
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return fmt.Errorf("zookeeper: %s %s: %w: %w", step, path,
			driver.Invalid("key", "a znode on its path is ephemeral and can have no children"), err)
	case transient(err):
		return fmt.Errorf("zookeeper: %s %s: %w: %w", step, path, holdfast.ErrDisconnected, err)
	}
	return fmt.Errorf("zookeeper: %s %s: %w", step, path, err)
}

// disconnected is what a call returns that ctx ends while it waits for a server.
func disconnected(ctx context.Context) error {
	return fmt.Errorf("%w: %w", holdfast.ErrDisconnected, driver.ContextError(ctx))
}
