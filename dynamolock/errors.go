package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// Why a table or an item cannot be used.
var (
	// ErrTable: the table does not exist, is not active in time, or has another
	// key schema than [Options.Keys].
	ErrTable = errors.New("table cannot be used")
	// ErrItem: the item of the key is not a lock's, or is corrupt; an [*ItemError] names
	// the attribute.
	ErrItem = recordlock.ErrCorrupt
)

// An ItemError says which attribute keeps an item from being a lock's: some other program
// has written it. Holdfast does not write to such an item, as far as the conditions of a
// write can tell, which check types and ranges: it may write to an item that looks
// released except for a token of 1.5 or a time before 1970. An ItemError matches
// [ErrItem].
type ItemError struct {
	Table     string
	Attribute string
	Reason    string
}

// Error implements error.
func (e *ItemError) Error() string {
	return fmt.Sprintf("table %q: %v: attribute %q %s", e.Table, ErrItem, e.Attribute, e.Reason)
}

// Unwrap makes errors.Is match ErrItem.
func (e *ItemError) Unwrap() error { return ErrItem }

const (
	opGet    = "GetItem"
	opUpdate = "UpdateItem"
)

// A callError is the failure of a request for another reason than its condition.
type callError struct {
	op, table string
	kind      errorKind
	err       error
}

type errorKind int

const (
	permanent errorKind = iota // another try would fail as well
	refused                    // not carried out, worth another try: throttled
	unknown                    // perhaps carried out, worth another try
	denied                     // by the credentials
)

func (e *callError) Error() string {
	if s := e.sentinel(); s != nil {
		return fmt.Sprintf("%s on table %q: %v: %v", e.op, e.table, s, e.err)
	}
	return fmt.Sprintf("%s on table %q: %v", e.op, e.table, e.err)
}

func (e *callError) Unwrap() []error {
	if s := e.sentinel(); s != nil {
		return []error{s, e.err}
	}
	return []error{e.err}
}

func (e *callError) sentinel() error {
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(e.err, &missing):
		return ErrTable
	case e.kind == denied:
		return driver.ErrDenied
	case e.kind != permanent:
		return driver.ErrDisconnected
	}
	return nil
}

// transient reports whether another try may succeed.
func transient(err error) bool {
	var e *callError
	return errors.As(err, &e) && (e.kind == unknown || e.kind == refused)
}

// deniedCodes are the answers to credentials that are wrong, missing or insufficient. The
// provider may have new ones by the next heartbeat, so a lock is not given up for them.
var deniedCodes = map[string]bool{
	"AccessDeniedException":               true,
	"AccessDenied":                        true,
	"UnrecognizedClientException":         true,
	"InvalidSignatureException":           true,
	"SignatureDoesNotMatch":               true,
	"IncompleteSignature":                 true,
	"IncompleteSignatureException":        true,
	"MissingAuthenticationToken":          true,
	"MissingAuthenticationTokenException": true,
	"InvalidClientTokenId":                true,
	"ExpiredToken":                        true,
	"ExpiredTokenException":               true,
	"NotAuthorized":                       true,
	"OptInRequired":                       true,
}

// identityCodes are answers of the service that exchanges another identity provider's
// token for credentials: that it could not check the token just now, or that the token is
// being replaced. Nothing was sent to DynamoDB.
var identityCodes = map[string]bool{
	"InvalidIdentityToken":          true,
	"InvalidIdentityTokenException": true,
	"IDPCommunicationError":         true,
}

var throttles = retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}

// classify says what an error of the SDK means. A request that failed without an answer of
// the server may have been carried out.
func classify(err error) errorKind {
	var (
		api     smithy.APIError
		garbled *smithy.DeserializationError
	)
	isAnswer := errors.As(err, &api)
	switch {
	case throttles.IsErrorThrottle(err) == aws.TrueTernary, conflicting(err):
		return refused
	case isAnswer && identityCodes[api.ErrorCode()]:
		return refused
	case isAnswer && deniedCodes[api.ErrorCode()]:
		return denied
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unknown
	case retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary:
		return unknown
	case isAnswer && !unsigned(err):
		if api.ErrorFault() == smithy.FaultServer {
			return unknown
		}
		return permanent
	case errors.As(err, &garbled), onTheWay(err):
		return unknown
	case unsigned(err):
		return denied
	}
	return permanent
}

// conflicting reports whether a request was refused because a transaction or another
// region was writing the item.
func conflicting(err error) bool {
	var (
		conflict *types.TransactionConflictException
		replica  *types.ReplicatedWriteConflictException // of a global table
	)
	return errors.As(err, &conflict) || errors.As(err, &replica)
}

// skewed reports whether a signature was refused because of a wrong clock, which the SDK
// has corrected by that answer.
func skewed(err error) bool {
	var (
		api       smithy.APIError
		retryable interface{ RetryableError() bool }
	)
	return errors.As(err, &api) && deniedCodes[api.ErrorCode()] &&
		errors.As(err, &retryable) && retryable.RetryableError()
}

// answered reports whether a request had any answer.
func answered(err error) bool {
	var api smithy.APIError
	return err == nil || errors.As(err, &api)
}

// onTheWay reports whether an error is a network error.
func onTheWay(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// unsigned reports whether there were no credentials to sign a request with. The SDK has no
// error type for that.
func unsigned(err error) bool {
	text := err.Error()
	return strings.Contains(text, "get identity") || strings.Contains(text, "identity resolver") || strings.Contains(text, "credentials")
}
