package main

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// library is one whose locks are compared.
type library struct {
	name string
	open func(ctx context.Context, s *servers, p place) (*client, error)
}

// client takes locks with a library.
type client struct {
	take  func(ctx context.Context, key string) (release func() error, err error)
	queue func(key string) string // on ZooKeeper: the znode below which a key's contenders stand
	close func()
	peer  *peer // in place of take: a process of its own, which measures itself
}

// onZK and onDynamo are holdfast.
var (
	onZK     = zooKeeperWith()
	onDynamo = library{"holdfast", func(ctx context.Context, s *servers, p place) (*client, error) {
		e, err := s.dynamoDB(ctx)
		if err != nil {
			return nil, err
		}
		c, err := e.connect(ctx, dynamolock.Options{Lease: dynamolock.DefaultLease}, func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(e.url(p)) })
		if err != nil {
			return nil, err
		}
		return &client{take: takeOf(c.Client), close: func() { closeClient(c.Client) }}, nil
	}}
)

// zooKeeperWith is holdfast, with options for each lock.
func zooKeeperWith(opts ...holdfast.Option) library {
	return library{"holdfast", func(ctx context.Context, s *servers, p place) (*client, error) {
		e, err := s.zooKeeper(ctx)
		if err != nil {
			return nil, err
		}
		c, err := e.connect(ctx, e.addr(p))
		if err != nil {
			return nil, err
		}
		return &client{take: takeOf(c.Client, opts...), queue: ourQueue, close: func() { closeClient(c.Client) }}, nil
	}}
}

// takeOf takes our locks. Their context is cancellable, as in a server's request.
func takeOf(c *holdfast.Client, opts ...holdfast.Option) func(context.Context, string) (func() error, error) {
	return func(ctx context.Context, key string) (func() error, error) {
		lock, err := c.Acquire(ctx, key, opts...)
		if err != nil {
			return nil, err
		}
		return func() error { return lock.Release(ctx) }, nil
	}
}

// closeClient releases what a client still holds.
func closeClient(c *holdfast.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

func ourQueue(key string) string { return root + "/" + key }

func peerQueue(key string) string { return peerRoot + "/" + key }

// goZookeeper is go-zookeeper's Lock. It has no context: what waits gives up with its session.
var goZookeeper = library{"go-zookeeper's Lock", func(ctx context.Context, s *servers, p place) (*client, error) {
	return plainClient(ctx, s, p, peerQueue, func(conn *zk.Conn, key string) (func() error, error) {
		lock := zk.NewLock(conn, peerQueue(key), zk.WorldACL(zk.PermAll))
		return lock.Unlock, lock.LockWithData([]byte(owner))
	})
}}

// bareName is as long as the name of a lock node.
const bareName = "_c_00000000-0000-4000-8000-000000000000-node-"

// bareNodes is the minimum for any lock on ZooKeeper.
var bareNodes = library{"a bare create + delete", func(ctx context.Context, s *servers, p place) (*client, error) {
	return plainClient(ctx, s, p, nil, func(conn *zk.Conn, _ string) (func() error, error) {
		path, err := conn.Create(bareRoot+"/"+bareName, []byte(owner),
			zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		return func() error { return conn.Delete(path, -1) }, err
	})
}}

func plainClient(
	ctx context.Context, s *servers, p place, queue func(string) string, take func(*zk.Conn, string) (func() error, error),
) (*client, error) {
	e, err := s.zooKeeper(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := dialPlain(ctx, e.addr(p))
	if err != nil {
		return nil, err
	}
	return &client{
		take:  func(_ context.Context, key string) (func() error, error) { return take(conn, key) },
		queue: queue,
		close: conn.Close,
	}, nil
}
