package main

import (
	"context"
	_ "embed"
	"strconv"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

//go:embed AWSLock.java
var awsSource string

// awsClient has the same table, server and lease as holdfast.
func awsClient() side {
	return side{"AWS's lock client for Java", program("AWSLock.java", awsSource, "run", 3000,
		func(ctx context.Context, l *lifetime, path string) ([]string, error) {
			d, err := l.startDynamoDB(ctx)
			if err != nil {
				return nil, err
			}
			classpath, err := l.peer(ctx, "AWS's lock client")
			lease := dynamolock.DefaultLease.Milliseconds()
			env := append(d.target.Env(), "DYNAMODB_ENDPOINT="+d.url(true))
			return append(env, java(classpath, path, d.table, dynamoserver.DefaultKey, owner,
				strconv.FormatInt(lease, 10), strconv.FormatInt(lease/4, 10))...), err
		})}
}
