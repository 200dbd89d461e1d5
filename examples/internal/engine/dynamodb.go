package engine

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/dynamolock"
)

// DynamoAPI is the part of the AWS SDK that the examples call.
type DynamoAPI interface {
	dynamolock.API
	dynamolock.TableAPI
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// dynamoFlags declares the flags of the table.
func dynamoFlags(flags *flag.FlagSet) func() (*Engine, error) {
	table := flags.String("table", "holdfast", "DynamoDB: the `name` of the table, which is created if there is none")
	endpoint := flags.String("endpoint", os.Getenv("DYNAMODB_ENDPOINT"),
		"DynamoDB: the `URL` of a server, such as http://127.0.0.1:8000; variable DYNAMODB_ENDPOINT\n"+
			"(default: AWS, by the variables AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN)")
	return func() (*Engine, error) { return DynamoDB(*table, *endpoint) }
}

// DynamoDB is an engine on AWS, or on a server with the same API at endpoint.
//
// Your program would rather make the SDK's client with the module
// github.com/aws/aws-sdk-go-v2/config, which finds region and credentials in more
// places. The examples avoid it, since their imports are in the go.sum of every
// user of holdfast.
func DynamoDB(table, endpoint string) (*Engine, error) {
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	signed := os.Getenv("AWS_ACCESS_KEY_ID") != ""
	where := fmt.Sprintf("DynamoDB, table %q at %s", table, cmp.Or(endpoint, "AWS, region "+region))
	credentials := fromEnvironment
	if endpoint == "" {
		if region == "" || !signed {
			return nil, errors.New("DynamoDB on AWS needs the variables AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY;" +
				" for a server of your own, such as DynamoDB Local, give its -endpoint: http://127.0.0.1:8000")
		}
	} else {
		// Servers for tests want a signature, but anybody's will do.
		region = cmp.Or(region, "us-east-1")
		if !signed {
			credentials = anybody
		}
	}
	return &Engine{
		Name: "dynamodb", Where: where, Lease: serverLease, Poll: dynamolock.DefaultPoll,
		NewClient: func(ctx context.Context, owner string) (*Client, error) {
			transport := &cutter{HTTPClient: awshttp.NewBuildableClient()}
			o := dynamodb.Options{Region: region, Credentials: aws.CredentialsProviderFunc(credentials), HTTPClient: transport}
			if endpoint != "" {
				o.BaseEndpoint = &endpoint
			}
			c := &Client{
				API:  dynamodb.New(o),
				Cut:  func() { transport.cut.Store(true) },
				Heal: func() { transport.cut.Store(false) },
			}
			options := &dynamolock.Options{
				Table: table, Owner: owner, Lease: serverLease,
			}
			open := func(ctx context.Context) (err error) {
				ctx, cancel := context.WithTimeout(ctx, openTimeout)
				defer cancel()
				c.Dynamo, err = dynamolock.New(ctx, c.API, options)
				return err
			}
			err := open(ctx)
			// Creating a table needs another permission and, on AWS, some time, so
			// only do it if the table is missing.
			var missing *types.ResourceNotFoundException
			if errors.As(err, &missing) {
				options.OpenTimeout = time.Minute
				if err := dynamolock.CreateTable(ctx, c.API, options); err != nil {
					return nil, err
				}
				err = open(ctx)
			}
			if err != nil {
				return nil, err
			}
			c.Client = c.Dynamo.Client
			return c, nil
		},
	}, nil
}

func fromEnvironment(context.Context) (aws.Credentials, error) {
	return aws.Credentials{
		AccessKeyID:     os.Getenv("AWS_ACCESS_KEY_ID"),
		SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
		Source:          "environment",
	}, nil
}

func anybody(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "anybody", SecretAccessKey: "anything", Source: "examples"}, nil
}

// A cutter is a network connection that can be cut: then no reply comes, not even
// an error.
type cutter struct {
	aws.HTTPClient

	cut atomic.Bool
}

// Do implements aws.HTTPClient.
func (c *cutter) Do(r *http.Request) (*http.Response, error) {
	if !c.cut.Load() {
		response, err := c.HTTPClient.Do(r)
		if !c.cut.Load() {
			return response, err
		}
		if err == nil {
			response.Body.Close()
		}
	}
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}
