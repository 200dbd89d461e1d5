package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// attributes are an item, or the key of one.
type attributes = map[string]types.AttributeValue

// call sends one request of a store. The limit of its time is that of ctx.
func call[In, Out any](
	ctx context.Context, s *store, op string, in In, send func(context.Context, In, ...func(*dynamodb.Options)) (Out, error),
) (out Out, err error) {
	err = request(ctx, s.host, op, s.opts.Table, func() (err error) {
		out, err = send(ctx, in, s.reach.once)
		return err
	})
	return out, err
}

// request sends one request and classifies its failure. It repeats the request while a transaction is writing the item. It repeats the
// request once if the SDK signed it by a wrong clock, which the SDK corrects by that answer.
func request(ctx context.Context, clock driver.Clock, op, table string, send func() error) error {
	for corrected := false; ; {
		err := send()
		if err == nil || errors.As(err, new(*types.ConditionalCheckFailedException)) {
			return err
		}
		conflict := errors.As(err, new(*types.TransactionConflictException)) || errors.As(err, new(*types.ReplicatedWriteConflictException))
		class, sentinel := classify(err)
		var skew interface{ RetryableError() bool }
		switch {
		case conflict && backoff.Sleep(ctx, clock, 10*time.Millisecond+rand.N(40*time.Millisecond), nil):
			continue
		case conflict:
			class, sentinel = recordlock.Busy, driver.ErrDisconnected
		case sentinel == driver.ErrDenied && !corrected && errors.As(err, &skew) && skew.RetryableError():
			corrected = true
			continue
		case sentinel == nil:
			return fmt.Errorf("%s on table %q: %w", op, table, err)
		}
		err = fmt.Errorf("%s on table %q: %w: %w", op, table, sentinel, err)
		if sentinel == driver.ErrDisconnected {
			err = &recordlock.Error{Class: class, Err: err}
		}
		return err
	}
}

// transient reports whether another try may succeed.
func transient(err error) bool { return errors.As(err, new(*recordlock.Error)) }

// deniedCodes are the answers to credentials that are wrong, missing or insufficient. The
// provider may have new ones by the next heartbeat, so a lock is not given up for them.
var deniedCodes = []string{
	"AccessDeniedException", "AccessDenied", "UnrecognizedClientException", "InvalidSignatureException", "SignatureDoesNotMatch",
	"IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException",
	"InvalidClientTokenId", "ExpiredToken", "ExpiredTokenException", "NotAuthorized", "OptInRequired",
}

// identityCodes are answers of the service that exchanges another identity provider's token for credentials: that it could not check the
// token just now, or that the token is being replaced. Nothing was sent to DynamoDB.
var identityCodes = []string{"InvalidIdentityToken", "InvalidIdentityTokenException", "IDPCommunicationError"}

var throttles = retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}

// classify says what an error of the SDK means. Without a sentinel it is permanent; the class is that of ErrDisconnected. A request that
// failed without an answer of the server may have been carried out.
func classify(err error) (class recordlock.Class, sentinel error) {
	var (
		api     smithy.APIError
		network net.Error
		dial    *net.OpError
	)
	isAnswer := errors.As(err, &api)
	// The SDK has no error type for requests that no credentials sign.
	text := err.Error()
	unsigned := strings.Contains(text, "identity resolver") || strings.Contains(text, "get identity") || strings.Contains(text, "credentials")
	switch {
	case errors.As(err, new(*types.ResourceNotFoundException)):
		return 0, ErrTable
	case errors.As(err, &dial) && dial.Op == "dial": // there was no connection
		return recordlock.NotDone, driver.ErrDisconnected
	case throttles.IsErrorThrottle(err) == aws.TrueTernary, isAnswer && slices.Contains(identityCodes, api.ErrorCode()):
		return recordlock.NotDone, driver.ErrDisconnected
	case isAnswer && slices.Contains(deniedCodes, api.ErrorCode()):
		return 0, driver.ErrDenied
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary,
		isAnswer && !unsigned && api.ErrorFault() == smithy.FaultServer:
		return recordlock.Unknown, driver.ErrDisconnected
	case isAnswer && !unsigned:
		return 0, nil
	case errors.As(err, new(*smithy.DeserializationError)), errors.As(err, &network), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF):
		return recordlock.Unknown, driver.ErrDisconnected
	case unsigned:
		return 0, driver.ErrDenied
	}
	return 0, nil
}
