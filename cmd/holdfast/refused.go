package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
)

// refusedAfter is how long, and from then on how often, a command that gets no
// connection waits before it looks whether it is refused by all who could give one.
// The library waits for as long as it may, since servers may be starting; who has
// typed a command wants to hear of a wrong port sooner.
const refusedAfter = time.Second

// unlessRefused runs connect, and ends that when every one of some addresses refuses
// to be connected to.
func unlessRefused[T any](ctx context.Context, addresses []string, connect func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	refused := make(chan error, 1)
	go func() {
		look := time.NewTicker(refusedAfter)
		defer look.Stop()
		for {
			select {
			case <-look.C:
			case <-ctx.Done():
				return
			}
			if err := allRefuse(ctx, addresses); err != nil {
				refused <- err
				cancel()
				return
			}
		}
	}()
	c, err := connect(ctx)
	if err != nil {
		select {
		case why := <-refused:
			return c, fmt.Errorf("%w: %w", holdfast.ErrDisconnected, why)
		default:
		}
	}
	return c, err
}

// allRefuse returns nil if one of the addresses takes connections, or may be about to.
func allRefuse(ctx context.Context, addresses []string) error {
	ctx, cancel := context.WithTimeout(ctx, refusedAfter)
	defer cancel()
	errs := make(chan error, len(addresses))
	for _, address := range addresses {
		go func() {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, "tcp", address)
			if err == nil {
				_ = conn.Close()
			}
			errs <- err
		}()
	}
	var all error
	for range addresses {
		err := <-errs
		if !refuses(err) {
			return nil
		}
		all = errors.Join(all, err)
	}
	return all
}

func refuses(err error) bool {
	var dns *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) ||
		errors.As(err, &dns) && dns.IsNotFound
}
