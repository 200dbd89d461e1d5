package main

import (
	"context"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// server is a ZooKeeper server that can be stopped and started.
type server struct {
	addr  string
	about string // where it was found
	stop  func(ctx context.Context)
	start func(ctx context.Context) error
	close func()

	stops, starts string // what stop and start do, in words
}

// findServer starts a process of our own, which can really be stopped. A
// given server, or one in a container, is cut off instead.
func findServer(ctx context.Context) (*server, error) {
	config := zkserver.Config{TickTime: 100 * time.Millisecond}
	elsewhere := os.Getenv("ZOOKEEPER_SERVERS") != "" || os.Getenv("HOLDFAST_ZOOKEEPER") == string(zkserver.Docker)
	if !elsewhere && zkserver.Installed() == nil {
		s, err := zkserver.Start(ctx, config)
		if err != nil {
			return nil, err
		}
		return &server{
			addr:   s.Addr(),
			about:  "a local process",
			stop:   s.Stop,
			start:  s.Start,
			close:  s.Close,
			stops:  "stops",
			starts: "starts again",
		}, nil
	}
	target, err := zkserver.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	proxy, err := faultproxy.Start(target.Addrs()[0])
	if err != nil {
		target.Close()
		return nil, err
	}
	return &server{
		addr:  proxy.Addr(),
		about: string(target.Source()) + ", " + target.Addrs()[0] + ", through a proxy",
		stop:  func(context.Context) { proxy.Cut() },
		start: func(context.Context) error { return proxy.Heal() },
		close: func() {
			_ = proxy.Close()
			target.Close()
		},
		stops:  "is cut off",
		starts: "can be reached",
	}, nil
}
