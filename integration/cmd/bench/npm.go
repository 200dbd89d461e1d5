package main

import (
	"context"
	_ "embed"
	"strconv"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/npm"
)

//go:embed npm.js
var npmSource string

// npmClient has the same table, server and lease as holdfast.
func npmClient() side {
	return side{"npm's dynamodb-lock-client", program("npm.js", npmSource, "run", 0,
		func(ctx context.Context, l *lifetime, path string) ([]string, error) {
			d, err := l.startDynamoDB(ctx)
			if err != nil {
				return nil, err
			}
			node, err := npm.Node()
			if err != nil {
				return nil, err
			}
			modules, err := npm.Modules()
			return append(d.target.Env(), "AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE=1", node, "--expose-gc", path, modules,
				d.table, dynamoserver.DefaultKey, owner, strconv.FormatInt(dynamolock.DefaultLease.Milliseconds(), 10)), err
		})}
}
