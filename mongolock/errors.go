package mongolock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// Why a server or a document cannot be used.
var (
	// ErrServer: the server cannot keep locks: it is standalone, or too old, or no majority can confirm writes.
	ErrServer = errors.New("server cannot keep locks")
	// ErrRecord: the document of the key is not a lock's, or is corrupt. Another program has written it; holdfast leaves it alone.
	ErrRecord = recordlock.ErrCorrupt
)

// failed names a step, and says what its failure means.
func (s *store) failed(step string, err error) error {
	class, sentinel := classify(err)
	if sentinel == nil {
		return fmt.Errorf("%s in %q: %w", step, s.name, err)
	}
	err = fmt.Errorf("%s in %q: %w: %w", step, s.name, sentinel, err)
	if sentinel == driver.ErrDisconnected {
		err = &recordlock.Error{Class: class, Err: err}
	}
	return err
}

// Codes of MongoDB's errors, by their meaning: see src/mongo/base/error_codes.yml.
var (
	deniedCodes = []int{11, 13, 18, 391, 8000} // an operator may replace the credentials, so a lock is not given up for them
	unfitCodes  = []int{79, 100, 123}          // UnknownReplWriteConcern, UnsatisfiableWriteConcern, NotAReplicaSet
	// The server is busy, stops, is not the primary any more, or was too slow. It may have carried out the request.
	transientCodes = []int{
		6, 7, 24, 46, 50, 63, 64, 89, 91, 112, 133, 134, 150, 189, 202, 262, 317, 462, 9001, 10058, 10107, 11600, 11601, 11602, 13388, 13435,
		13436,
	}
)

// The driver has no public type for this error. It repeats writes itself, so only the first error says that no attempt was sent.
const unselected = "server selection error"

// classify says what an error of the driver means. Without a sentinel it is permanent; the class is that of ErrDisconnected.
func classify(err error) (class recordlock.Class, sentinel error) {
	var write mongo.WriteException
	var command mongo.CommandError // without a code, the driver's own
	var server mongo.ServerError
	answered, text := errors.As(err, &server), err.Error()
	has := func(codes []int) bool { return answered && slices.ContainsFunc(codes, server.HasErrorCode) }
	switch {
	case errors.As(err, &write) && write.WriteConcernError != nil: // the primary has it, and perhaps no majority
		return recordlock.Unknown, driver.ErrDisconnected
	case has(deniedCodes):
		return 0, driver.ErrDenied
	case has(unfitCodes), strings.Contains(text, "wire version"):
		return 0, ErrServer
	case !answered && strings.Contains(text, unselected):
		return recordlock.NotDone, driver.ErrDisconnected
	case has(transientCodes), answered && server.HasErrorLabel("RetryableWriteError"), errors.As(err, &command) && command.Code == 0,
		mongo.IsTimeout(err), errors.Is(err, context.Canceled), !answered && !errors.Is(err, mongo.ErrClientDisconnected):
		return recordlock.Unknown, driver.ErrDisconnected
	}
	return 0, nil
}

// unreachable reports whether the driver found no primary because each address has failed. The driver's error has one cause per address.
func unreachable(err error) bool {
	addresses := strings.Count(err.Error(), "{ Addr: ")
	return addresses > 0 && addresses == strings.Count(err.Error(), "Last error: ")
}
