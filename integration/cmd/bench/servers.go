package main

import (
	"context"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// servers are started when the first row needs them, and stopped at the end.
type servers struct {
	quick     bool
	zookeeper *env
	dynamodb  *dynamoEnv
}

func (s *servers) close() {
	if s.zookeeper != nil {
		s.zookeeper.close()
	}
	if s.dynamodb != nil {
		s.dynamodb.close()
	}
}

// measure emits the lines of a row.
type measure func(ctx context.Context, s *servers, emit func(report.Row)) error

func onZooKeeper(row func(context.Context, *env, func(report.Row)) error) measure {
	return func(ctx context.Context, s *servers, emit func(report.Row)) (err error) {
		if s.zookeeper == nil {
			if s.zookeeper, err = newEnv(ctx, s.quick); err != nil {
				return err
			}
		}
		return row(ctx, s.zookeeper, emit)
	}
}

func onDynamoDB(row func(context.Context, *dynamoEnv, func(report.Row)) error) measure {
	return func(ctx context.Context, s *servers, emit func(report.Row)) (err error) {
		if s.dynamodb == nil {
			if s.dynamodb, err = newDynamoEnv(ctx, s.quick); err != nil {
				return err
			}
		}
		return row(ctx, s.dynamodb, emit)
	}
}
