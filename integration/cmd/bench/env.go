package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// sessionTimeout is the same on both sides.
const sessionTimeout = 10 * time.Second

// root holds our keys; peerRoot, as deep, holds go-zookeeper's.
const root, peerRoot = "/bench", "/peer"

// owner is the data of every lock node, on both sides.
const owner = "bench-host:12345:ABCDEFGHIJ"

// env is the server on which the ZooKeeper rows are measured, reached
// directly or through a proxy.
type env struct {
	scale
	server *zkserver.Server
	proxy  *faultproxy.Proxy
}

func newEnv(ctx context.Context, quick bool) (*env, error) {
	server, err := zkserver.Start(ctx, zkserver.Config{
		FullJIT:           true,
		Heap:              "512m",
		TickTime:          500 * time.Millisecond,
		MaxSessionTimeout: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	proxy, err := faultproxy.Start(server.Addr())
	if err != nil {
		server.Close()
		return nil, err
	}
	return &env{scale: scale{quick: quick}, server: server, proxy: proxy}, nil
}

func (e *env) close() {
	_ = e.proxy.Close()
	e.server.Close()
}

// connect opens a client of each side to the same address.
func (e *env) connect(ctx context.Context, addr string) (*clients, error) {
	ours, err := zklock.Dial(ctx, []string{addr}, &zklock.Options{Root: root, Owner: owner, SessionTimeout: sessionTimeout})
	if err != nil {
		return nil, err
	}
	peer, err := dialPeer(ctx, addr)
	if err != nil {
		return nil, errors.Join(err, ours.Close(ctx))
	}
	for _, path := range []string{root, peerRoot} {
		if _, err := peer.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return nil, err
		}
	}
	return &clients{ours: ours, peer: peer}, nil
}

// dialPeer opens a plain go-zookeeper connection.
func dialPeer(ctx context.Context, addr string) (*zk.Conn, error) {
	conn, events, err := zk.Connect([]string{addr}, sessionTimeout, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return conn, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, context.Cause(ctx)
		}
	}
}

// clients are one of each side, on one session each.
type clients struct {
	ours *zklock.Client
	peer *zk.Conn
}

func (c *clients) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = c.ours.Close(ctx)
	c.peer.Close()
}

// peerLock is go-zookeeper's Lock of a key.
func (c *clients) peerLock(key string) *zk.Lock {
	return zk.NewLock(c.peer, peerPath(key), zk.WorldACL(zk.PermAll))
}

func peerPath(key string) string { return peerRoot + "/" + strings.ReplaceAll(key, "/", "%2F") }

// silent keeps go-zookeeper off stderr.
type silent struct{}

func (silent) Printf(string, ...any) {}
