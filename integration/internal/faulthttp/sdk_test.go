package faulthttp

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
)

// TestSDKUnderstandsTheAnswers also checks which of them the SDK retries.
func TestSDKUnderstandsTheAnswers(t *testing.T) {
	t.Parallel()
	for name, open := range routes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testAnswers(t, open)
		})
	}
}

func testAnswers(t *testing.T, open func(*testing.T, *server) (*Transport, route)) {
	for name, c := range map[string]struct {
		fault   Fault
		code    string
		retried bool
	}{
		"throttled":    {Throttled(), "ProvisionedThroughputExceededException", true},
		"rate limited": {RateLimited(), "ThrottlingException", true},
		"server error": {ServerError(), "InternalServerError", true},
		"denied":       {Denied(), "AccessDeniedException", false},
		"reset":        {LoseReply(Reset), "", true},
		"EOF":          {LoseReply(EOF), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, way := open(t, newServer(t))
			tr.SetRule(All("ListTables", c.fault))
			client := dynamodb.New(dynamodb.Options{
				Region:       "us-east-1",
				BaseEndpoint: aws.String(way.url),
				HTTPClient:   way.client,
				Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					return aws.Credentials{AccessKeyID: "x", SecretAccessKey: "x"}, nil
				}),
				Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
					o.MaxAttempts = 2
					o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
				}),
			})
			_, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
			var api smithy.APIError
			if code := ""; errors.As(err, &api) {
				code = api.ErrorCode()
				if code != c.code {
					t.Errorf("error code %q, want %q", code, c.code)
				}
			} else if err == nil || c.code != "" {
				t.Errorf("error %v, want one with code %q", err, c.code)
			}
			want := 1
			if c.retried {
				want = 2
			}
			if n := tr.Count("ListTables"); n != want {
				t.Errorf("%d attempts, want %d", n, want)
			}
		})
	}
}
