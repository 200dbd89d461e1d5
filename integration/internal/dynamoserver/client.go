package dynamoserver

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// access holds the credentials with which a client signs its requests.
type access struct {
	region, id, secret, token string
}

// anyAccess is for servers that check no signatures. Some separate tables by region and key id (letters and digits only), so
// all clients use the same.
var anyAccess = access{region: "us-east-1", id: "holdfast", secret: "holdfast"}

// Client returns a client of the service with a [Target.Transport] of its own. The options are applied last; an HTTPClient
// among them may wrap such a transport to break it.
func (t *Target) Client(opts ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       t.access.region,
		BaseEndpoint: aws.String(t.endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider(t.access.id, t.access.secret, t.access.token),
		HTTPClient:   &http.Client{Transport: t.Transport()},
	}, opts...)
}

// Transport returns a new transport to the service.
func (t *Target) Transport() *http.Transport {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.MaxIdleConnsPerHost = tr.MaxIdleConns
	// Node.js closes idle connections after 5 seconds. A request at that moment would fail with an unknown outcome.
	tr.IdleConnTimeout = 3 * time.Second
	return tr
}

// Env returns the environment variables (name=value) with which a child process reaches the same service, by calling [Open]
// or through an AWS SDK whose endpoint is DYNAMODB_ENDPOINT.
func (t *Target) Env() []string {
	return []string{
		"DYNAMODB_ENDPOINT=" + t.endpoint,
		"HOLDFAST_DYNAMODB=",
		"AWS_REGION=" + t.access.region,
		"AWS_ACCESS_KEY_ID=" + t.access.id,
		"AWS_SECRET_ACCESS_KEY=" + t.access.secret,
		"AWS_SESSION_TOKEN=" + t.access.token,
	}
}

func isAWS(endpoint string) bool {
	if endpoint == "aws" {
		return true
	}
	u, err := url.Parse(endpoint)
	return err == nil && (strings.HasSuffix(u.Hostname(), ".amazonaws.com") || strings.HasSuffix(u.Hostname(), ".amazonaws.com.cn"))
}

// awsAccess reads the endpoint and credentials from the environment. Profiles, roles and single sign-on would need another
// module; the AWS command line turns any of them into these variables.
func awsAccess(ctx context.Context, endpoint string) (string, access, error) {
	a := access{
		region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
		id:     os.Getenv("AWS_ACCESS_KEY_ID"),
		secret: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		token:  os.Getenv("AWS_SESSION_TOKEN"),
	}
	if a.region == "" || a.id == "" || a.secret == "" {
		return "", access{}, errors.New("AWS needs AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN " +
			"with temporary credentials (\"aws configure export-credentials --format env\" prints all but the region)")
	}
	if endpoint == "aws" {
		resolved, err := dynamodb.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, dynamodb.EndpointParameters{Region: aws.String(a.region)})
		if err != nil {
			return "", access{}, err
		}
		endpoint = resolved.URI.String()
	}
	return endpoint, a, nil
}

// serves returns nil when the service answers a request.
func serves(ctx context.Context, c *dynamodb.Client) error {
	_, err := c.ListTables(ctx, &dynamodb.ListTablesInput{Limit: aws.Int32(1)})
	return err
}

// noRetry is a client's option: report the first failure.
func noRetry(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
