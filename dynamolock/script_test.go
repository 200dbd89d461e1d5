package dynamolock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/clock"
)

const tableName = "locks"

// A script is a server that answers by functions and keeps no items, below the SDK's own client. It shows what a real server cannot be
// made to do. Without a function it has the table, no item, and no Time to Live; it accepts all writes.
type script struct {
	answer func(request) reply
	ahead  time.Duration // of the server's clock

	mu   sync.Mutex
	sent map[string]int // requests by their operations
	last request
}

// A request is what the script reads of a request.
type request struct {
	Op                        string
	UpdateExpression          string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]map[string]any
}

// A reply is what a script answers. The zero value is the default answer.
type reply struct {
	status int // 0: 200
	body   string
	err    error // of the connection
	silent bool  // no answer comes
}

// fail is an error of the service.
func fail(code string) reply {
	status := http.StatusBadRequest
	if code == "InternalServerError" {
		status = http.StatusInternalServerError
	}
	return reply{status: status, body: fmt.Sprintf(`{"__type": "com.amazonaws.dynamodb.v20120810#%s", "message": "m"}`, code)}
}

// refuse is the answer to a write whose condition failed; item may be "".
func refuse(item string) reply {
	r := fail("ConditionalCheckFailedException")
	if item != "" {
		r.body = strings.TrimSuffix(r.body, "}") + `, "Item": ` + item + "}"
	}
	return r
}

// described is the description of a table; more follows its keys.
func described(status, more string) reply {
	return reply{body: fmt.Sprintf(`{"Table": {"TableStatus": %q, "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
		"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}]%s}}`, status, more)}
}

// timeToLive is the description of a table's Time to Live by an attribute.
func timeToLive(attribute string) reply {
	return reply{body: fmt.Sprintf(`{"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": %q}}`, attribute)}
}

// item is an answer with an item, which begins with the guid of another program.
func item(more string) string {
	return `{"id": {"S": "k"}, "owner": {"S": "node"}, "guid": {"B": "` + strings.Repeat("Z", 84) + `Zw=="}` + more + `}`
}

// RoundTrip implements http.RoundTripper.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent request
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &sent)
	_, sent.Op, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.mu.Lock()
	if s.sent == nil {
		s.sent = make(map[string]int)
	}
	s.sent[sent.Op]++
	s.last = sent
	s.mu.Unlock()

	var a reply
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	now := time.Now().Add(s.ahead)
	switch {
	case r.Header.Get("Authorization") == "":
		a = fail("MissingAuthenticationTokenException")
	case err != nil || now.Sub(signed).Abs() > 5*time.Minute:
		a = fail("InvalidSignatureException")
	case s.answer != nil:
		a = s.answer(sent)
	}
	switch {
	case a.silent:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case a.err != nil:
		return nil, a.err
	case a.body == "" && sent.Op == "DescribeTable":
		a = described("ACTIVE", "")
	case a.body == "":
		a.body = "{}"
	}
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "Date": {now.UTC().Format(http.TimeFormat)}}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// calls returns how many requests were sent, by their operations, and forgets them.
func (s *script) calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := maps.Clone(s.sent)
	clear(s.sent)
	return calls
}

// in returns an answer for the requests of an operation: the first, the second and so on; the last goes on.
func in(op string, replies ...reply) func(request) reply {
	return func(r request) (a reply) {
		if r.Op == op {
			if a = replies[0]; len(replies) > 1 {
				replies = replies[1:]
			}
		}
		return a
	}
}

var someCredentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
})

func (s *script) sdk(credentials aws.CredentialsProvider) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String("http://127.0.0.1:1"), Credentials: credentials, HTTPClient: &http.Client{Transport: s},
	})
}

// open returns a client of the script with another clock unless that is nil. The client is closed when the test ends.
func (s *script) open(t *testing.T, on driver.Clock, o dynamolock.Options) *dynamolock.Client {
	t.Helper()
	if on == nil {
		on = &drivertest.Clock{}
	}
	o.Table = tableName
	c, err := dynamolock.New(clock.With(t.Context(), on), s.sdk(someCredentials), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// each runs a test in virtual time for each of some cases.
func each[C any](t *testing.T, cases map[string]C, run func(t *testing.T, c C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { run(t, c) }) })
	}
}

// within is a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// took measures f.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
