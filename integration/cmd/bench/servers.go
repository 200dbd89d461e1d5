package main

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// servers are started when the first row needs them, and stopped at the end.
type servers struct {
	*scale
	report    *report.Report // of what has been measured
	zookeeper *env
	dynamodb  *dynamoEnv
	etcd      *etcdServer
	peers     []program // once one has been used
	others    []report.Version
}

func (s *servers) close() {
	if s.zookeeper != nil {
		s.zookeeper.close()
	}
	if s.dynamodb != nil {
		s.dynamodb.close()
	}
	if s.etcd != nil {
		s.etcd.close()
	}
}

func (s *servers) zooKeeper(ctx context.Context) (e *env, err error) {
	if s.zookeeper == nil {
		s.zookeeper, err = newEnv(ctx, s.scale)
	}
	return s.zookeeper, err
}

func (s *servers) dynamoDB(ctx context.Context) (e *dynamoEnv, err error) {
	if s.dynamodb == nil {
		s.dynamodb, err = newDynamoEnv(ctx, s.scale)
	}
	return s.dynamodb, err
}

func (s *servers) etcdServer(ctx context.Context) (*etcdServer, error) {
	if s.etcd == nil {
		e, version, err := startEtcd(ctx)
		if err != nil {
			return nil, err
		}
		s.etcd, s.others = e, append(s.others, report.Version{Name: "etcd", Version: version})
	}
	return s.etcd, nil
}

func onZooKeeper(row func(context.Context, *env, func(report.Row)) error) measure {
	return func(ctx context.Context, s *servers, emit func(report.Row)) error {
		e, err := s.zooKeeper(ctx)
		if err != nil {
			return err
		}
		return row(ctx, e, emit)
	}
}

func onDynamoDB(row func(context.Context, *dynamoEnv, func(report.Row)) error) measure {
	return func(ctx context.Context, s *servers, emit func(report.Row)) error {
		e, err := s.dynamoDB(ctx)
		if err != nil {
			return err
		}
		return row(ctx, e, emit)
	}
}

// scale is how much is measured.
type scale struct {
	quick  bool
	unique atomic.Int64
}

// plan is how long to measure with blocks of a given length; 0: as long as they take, after one of each.
func (s *scale) plan(length time.Duration, at place) plan {
	p := plan{blocks: cmp.Or(at.pairs, 40), length: length, warmup: time.Second}
	if s.quick {
		p = plan{blocks: 6, length: length / 4, warmup: 300 * time.Millisecond}
	}
	if length == 0 {
		p.warmup = time.Nanosecond
	}
	p.length, p.warmup = p.length*time.Duration(at.times), p.warmup*time.Duration(at.times)
	return p
}

// times returns the one number or, for a quick run, the other.
func (s *scale) times(full, quick int) int {
	if s.quick {
		return quick
	}
	return full
}

// name returns an unused name.
func (s *scale) name(prefix string) string {
	return fmt.Sprintf("%s-%d", prefix, s.unique.Add(1))
}
