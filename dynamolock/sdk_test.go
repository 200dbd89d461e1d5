package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// answers is a server with the same reply to every request but DescribeTable.
type answers struct {
	status int
	body   string
	err    error
	tries  atomic.Int32
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := a.status, a.body
	if r.Header.Get("Authorization") == "" { // as AWS answers
		status, body = 400, `{"__type": "com.amazon.coral.service#MissingAuthenticationTokenException", "message": "m"}`
	} else if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "DescribeTable") {
		status = http.StatusOK
		body = `{"Table": {"TableStatus": "ACTIVE", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
			"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}]}}`
	} else {
		if sent, err := io.ReadAll(r.Body); err == nil && strings.Contains(string(sent), "if_not_exists") {
			a.tries.Add(1) // and not what undoes one, later
		}
		if a.err != nil {
			return nil, a.err
		}
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

func sdk(transport http.RoundTripper, credentials aws.CredentialsProvider) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String("http://127.0.0.1:1"), Credentials: credentials,
		HTTPClient: &http.Client{Transport: transport},
	})
}

var someCredentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
})

// Servers' replies, through the whole SDK, which must not retry by itself.
func TestAnswersThroughTheSDK(t *testing.T) {
	coded := func(code string) string {
		return `{"__type": "com.amazonaws.dynamodb.v20120810#` + code + `", "message": "m"}`
	}
	for name, c := range map[string]struct {
		*answers
		want error
	}{
		"throttled":       {&answers{status: 400, body: coded("ProvisionedThroughputExceededException")}, holdfast.ErrDisconnected},
		"throttling":      {&answers{status: 400, body: coded("ThrottlingException")}, holdfast.ErrDisconnected},
		"too many":        {&answers{status: 400, body: coded("RequestLimitExceeded")}, holdfast.ErrDisconnected},
		"conflict":        {&answers{status: 400, body: coded("TransactionConflictException")}, holdfast.ErrDisconnected},
		"replica":         {&answers{status: 400, body: coded("ReplicatedWriteConflictException")}, holdfast.ErrDisconnected},
		"internal":        {&answers{status: 500, body: coded("InternalServerError")}, holdfast.ErrDisconnected},
		"unavailable":     {&answers{status: 503, body: `<html>no</html>`}, holdfast.ErrDisconnected},
		"garbled":         {&answers{status: 200, body: `{"Attributes": {`}, holdfast.ErrDisconnected},
		"reset":           {&answers{err: io.ErrUnexpectedEOF}, holdfast.ErrDisconnected},
		"denied":          {&answers{status: 400, body: coded("AccessDeniedException")}, holdfast.ErrDenied},
		"unknown key":     {&answers{status: 400, body: coded("UnrecognizedClientException")}, holdfast.ErrDenied},
		"expired token":   {&answers{status: 400, body: coded("ExpiredTokenException")}, holdfast.ErrDenied},
		"bad signature":   {&answers{status: 400, body: coded("InvalidSignatureException")}, holdfast.ErrDenied},
		"no such table":   {&answers{status: 400, body: coded("ResourceNotFoundException")}, dynamolock.ErrTable},
		"not understood":  {&answers{status: 400, body: coded("ValidationException")}, nil},
		"nothing at all":  {&answers{status: 200, body: `{}`}, dynamolock.ErrItem},
		"something else":  {&answers{status: 418, body: `{}`}, nil},
		"too many wanted": {&answers{status: 400, body: coded("LimitExceededException")}, holdfast.ErrDisconnected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := dynamolock.New(t.Context(), sdk(c.answers, someCredentials),
				&dynamolock.Options{Table: tableName, Lease: time.Minute, Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.TryAcquire(t.Context(), "k", once)
			again := name == "conflict" || name == "replica" // which is no failed try
			if n := c.tries.Load(); (n > 1) != again || n == 0 {
				t.Errorf("%d requests for one try", n)
			}
			for _, sentinel := range []error{holdfast.ErrDisconnected, holdfast.ErrDenied, dynamolock.ErrTable, dynamolock.ErrItem} {
				if errors.Is(err, sentinel) != (sentinel == c.want) {
					t.Errorf("%v; want %v", err, c.want)
				}
			}
			if err == nil || c.want != dynamolock.ErrItem && !strings.Contains(err.Error(), "UpdateItem") || !strings.Contains(err.Error(), `"k"`) {
				t.Errorf("%v does not name the call and the key", err)
			}
			closing := within(t, 50*time.Millisecond)
			_ = client.Close(closing) // with a leftover that cannot be removed here
		})
	}
}

func TestNoCredentials(t *testing.T) {
	for name, credentials := range map[string]aws.CredentialsProvider{
		"none":      nil,
		"anonymous": aws.AnonymousCredentials{},
		"failing": aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("the file is not there")
		}),
	} {
		_, err := dynamolock.New(t.Context(), sdk(&answers{}, credentials), &dynamolock.Options{Table: tableName, OpenTimeout: 5 * time.Second})
		if !errors.Is(err, holdfast.ErrDenied) || !strings.Contains(err.Error(), "DescribeTable") {
			t.Errorf("%s: %v, want ErrDenied", name, err)
		}
	}
}

// Tokens of web identities are replaced from time to time: the client asks again.
func TestIdentityTokenIsReplaced(t *testing.T) {
	for code, transient := range map[string]bool{"InvalidIdentityToken": true, "IDPCommunicationError": true, "ExpiredToken": false} {
		var asked atomic.Int32
		credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			if asked.Add(1) <= 2 {
				return aws.Credentials{}, fmt.Errorf("failed to retrieve credentials: %w", &smithy.GenericAPIError{Code: code, Message: "m"})
			}
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		})
		client, err := dynamolock.New(t.Context(), sdk(&answers{}, credentials), &dynamolock.Options{Table: tableName, OpenTimeout: 5 * time.Second})
		switch {
		case transient && err != nil:
			t.Errorf("%s, twice: %v", code, err)
		case !transient && !errors.Is(err, holdfast.ErrDenied):
			t.Errorf("%s: %v, want ErrDenied", code, err)
		}
		if client != nil {
			_ = client.Close(t.Context())
		}
	}
}

// punctual is a server with another clock. It refuses signatures whose time differs too much.
type punctual struct {
	answers
	ahead   time.Duration
	refused atomic.Int32
}

func (p *punctual) RoundTrip(r *http.Request) (*http.Response, error) {
	now := time.Now().Add(p.ahead)
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return nil, err
	}
	answer := &http.Response{StatusCode: http.StatusBadRequest, Request: r}
	if now.Sub(signed).Abs() > 5*time.Minute {
		p.refused.Add(1)
		answer.Header = http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
		answer.Body = io.NopCloser(strings.NewReader(
			`{"__type": "com.amazon.coral.service#InvalidSignatureException", "message": "Signature expired"}`,
		))
	} else if answer, err = p.answers.RoundTrip(r); err != nil {
		return nil, err
	}
	answer.Header.Set("Date", now.UTC().Format(http.TimeFormat))
	return answer, nil
}

// A machine whose clock is wrong gets its locks: the SDK learns the time from the first reply.
func TestSkewedClock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		server := &punctual{answers: answers{status: 400, body: `{"__type": "com.amazonaws.dynamodb.v20120810#ValidationException"}`}, ahead: ahead}
		ddb := sdk(server, someCredentials)
		client, err := dynamolock.New(t.Context(), ddb, &dynamolock.Options{Table: tableName})
		if err != nil {
			t.Fatalf("the server's clock is %v ahead: %v", ahead, err)
		}
		server.ahead = 2 * ahead // it was set in the meantime
		if _, err := client.TryAcquire(t.Context(), "k"); errors.Is(err, holdfast.ErrDenied) || server.tries.Load() != 1 {
			t.Errorf("%v ahead: %v after %d tries", 2*ahead, err, server.tries.Load())
		}
		if n := server.refused.Load(); n > 2 {
			t.Errorf("%d requests were signed with the wrong time, want one for each change of the clock", n)
		}
		_ = client.Close(t.Context())
	}
}
