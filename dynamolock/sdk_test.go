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
		want error
	}
	each(t, map[string]test{
		"throttled":       {fail("ProvisionedThroughputExceededException"), holdfast.ErrDisconnected},
		"throttling":      {fail("ThrottlingException"), holdfast.ErrDisconnected},
		"too many":        {fail("RequestLimitExceeded"), holdfast.ErrDisconnected},
		"conflict":        {fail("TransactionConflictException"), holdfast.ErrDisconnected},
		"internal":        {fail("InternalServerError"), holdfast.ErrDisconnected},
		"unavailable":     {reply{status: http.StatusServiceUnavailable, body: `<html>no</html>`}, holdfast.ErrDisconnected},
		"garbled":         {reply{body: `{"Attributes": {`}, holdfast.ErrDisconnected},
		"cut":             {reply{err: io.ErrUnexpectedEOF}, holdfast.ErrDisconnected},
		"reset":           {reply{err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}, holdfast.ErrDisconnected},
		"refused":         {reply{err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, holdfast.ErrDisconnected},
		"silence":         {reply{silent: true}, holdfast.ErrDisconnected},
		"denied":          {fail("AccessDeniedException"), holdfast.ErrDenied},
		"unknown key":     {fail("UnrecognizedClientException"), holdfast.ErrDenied},
		"expired token":   {fail("ExpiredTokenException"), holdfast.ErrDenied},
		"bad signature":   {fail("InvalidSignatureException"), holdfast.ErrDenied},
		"no such table":   {fail("ResourceNotFoundException"), dynamolock.ErrTable},
		"not understood":  {fail("ValidationException"), nil},
		"nothing at all":  {reply{body: `{}`}, dynamolock.ErrItem},
		"something else":  {reply{status: http.StatusTeapot, body: `{}`}, nil},
		"too many wanted": {fail("LimitExceededException"), holdfast.ErrDisconnected},
	}, func(t *testing.T, test test) {
		s := &script{}
		client := s.open(t, nil, dynamolock.Options{})
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
