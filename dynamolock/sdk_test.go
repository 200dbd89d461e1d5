package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// once makes an acquisition send one try.
var once = holdfast.WithRetry(holdfast.Retry{Attempts: 1})

// Servers' replies, through the whole SDK, which must not retry by itself.
func TestAnswersThroughTheSDK(t *testing.T) {
	type test struct {
		reply
		want  error
		doubt bool // the server may have carried out the request
	}
	each(t, map[string]test{
		"throttled":       {fail("ProvisionedThroughputExceededException"), holdfast.ErrDisconnected, false},
		"throttling":      {fail("ThrottlingException"), holdfast.ErrDisconnected, false},
		"too many":        {fail("RequestLimitExceeded"), holdfast.ErrDisconnected, false},
		"conflict":        {fail("TransactionConflictException"), holdfast.ErrDisconnected, false},
		"internal":        {fail("InternalServerError"), holdfast.ErrDisconnected, true},
		"unavailable":     {reply{status: http.StatusServiceUnavailable, body: `<html>no</html>`}, holdfast.ErrDisconnected, true},
		"garbled":         {reply{body: `{"Attributes": {`}, holdfast.ErrDisconnected, true},
		"cut":             {reply{err: io.ErrUnexpectedEOF}, holdfast.ErrDisconnected, true},
		"reset":           {reply{err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}, holdfast.ErrDisconnected, true},
		"refused":         {reply{err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, holdfast.ErrDisconnected, false},
		"silence":         {reply{silent: true}, holdfast.ErrDisconnected, true},
		"denied":          {fail("AccessDeniedException"), holdfast.ErrDenied, false},
		"unknown key":     {fail("UnrecognizedClientException"), holdfast.ErrDenied, false},
		"expired token":   {fail("ExpiredTokenException"), holdfast.ErrDenied, false},
		"bad signature":   {fail("InvalidSignatureException"), holdfast.ErrDenied, false},
		"no such table":   {fail("ResourceNotFoundException"), dynamolock.ErrTable, false},
		"not understood":  {fail("ValidationException"), nil, false},
		"nothing at all":  {reply{body: `{}`}, dynamolock.ErrItem, false},
		"something else":  {reply{status: http.StatusTeapot, body: `{}`}, nil, false},
		"too many wanted": {fail("LimitExceededException"), holdfast.ErrDisconnected, false},
	}, func(t *testing.T, test test) {
		s := &script{}
		client, closed := s.open(t, nil, dynamolock.Options{}), s.open(t, nil, dynamolock.Options{Mode: dynamolock.FailClosed})
		tries := 0
		s.answer = func(r request) reply {
			if strings.Contains(r.UpdateExpression, "if_not_exists") { // and not a request that undoes it later
				tries++
			}
			return test.reply
		}
		_, err := client.TryAcquire(within(t, 2*client.Options().Timeout), "k", once)
		if again := strings.Contains(test.body, "Conflict"); (tries > 1) != again || tries == 0 { // a conflict is no failed try
			t.Errorf("%d requests for one try", tries)
		}
		for _, sentinel := range []error{holdfast.ErrDisconnected, holdfast.ErrDenied, dynamolock.ErrTable, dynamolock.ErrItem} {
			if errors.Is(err, sentinel) != (sentinel == test.want) {
				t.Errorf("%v; want %v", err, test.want)
			}
		}
		text := fmt.Sprint(err)
		if !strings.Contains(text, `"k"`) || test.want != dynamolock.ErrItem && !strings.Contains(text, "UpdateItem") {
			t.Errorf("%v does not name the call and the key", err)
		}
		_, _ = closed.TryAcquire(within(t, 2*client.Options().Timeout), "k", once)
		if err := closed.Close(within(t, time.Second)); errors.Is(err, holdfast.ErrReleasePending) != test.doubt {
			t.Errorf("Close: %v; in doubt: %v", err, test.doubt)
		}
	})
}

func failingCredentials(err error, times int32) aws.CredentialsProvider {
	var asked atomic.Int32
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		if asked.Add(1) <= times {
			return aws.Credentials{}, err
		}
		return someCredentials(ctx)
	})
}

// Tokens of web identities are replaced from time to time: the client asks again.
func TestCredentials(t *testing.T) {
	code := func(code string) error {
		return fmt.Errorf("failed to retrieve credentials: %w", &smithy.GenericAPIError{Code: code, Message: "m"})
	}
	type test struct {
		credentials aws.CredentialsProvider
		want        error
	}
	each(t, map[string]test{
		"none":                  {nil, holdfast.ErrDenied},
		"anonymous":             {aws.AnonymousCredentials{}, holdfast.ErrDenied},
		"failing":               {failingCredentials(errors.New("the file is not there"), 1<<30), holdfast.ErrDenied},
		"expired":               {failingCredentials(code("ExpiredToken"), 2), holdfast.ErrDenied},
		"invalid identity":      {failingCredentials(code("InvalidIdentityToken"), 2), nil},
		"identity not answered": {failingCredentials(code("IDPCommunicationError"), 2), nil},
	}, func(t *testing.T, test test) {
		client, err := dynamolock.New(t.Context(), (&script{}).sdk(test.credentials), &dynamolock.Options{Table: tableName})
		if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), "DescribeTable") {
			t.Errorf("%v, want %v", err, test.want)
		}
		if client != nil {
			_ = client.Close(t.Context())
		}
	})
}

// A machine whose clock is wrong gets its locks: the SDK learns the time from the first reply.
func TestSkewedClock(t *testing.T) {
	each(t, map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour}, func(t *testing.T, ahead time.Duration) {
		s := &script{ahead: ahead}
		client := s.open(t, nil, dynamolock.Options{})
		s.ahead = 2 * ahead // it was set in the meantime
		s.answer = in("GetItem", reply{})
		s.calls()
		if _, err := client.Inspect(t.Context(), "k"); err != nil || s.calls()["GetItem"] != 2 {
			t.Errorf("%v", err)
		}
	})
}
