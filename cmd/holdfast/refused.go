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

// refusedAfter is how often a command without a connection checks whether all servers
// refuse connections. The library waits as long as it may, since servers may be starting; a
// user wants to hear of a wrong port sooner.
const refusedAfter = time.Second

// refusedError is the cause of a ctx that ended because every address refused connections.
type refusedError struct{ error }

// unlessRefused runs connect, and ends it when every address refuses connections.
func unlessRefused[T any](ctx context.Context, addresses []string, connect func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			select {
			case <-time.After(refusedAfter):
				if err := allRefuse(ctx, addresses); err != nil {
					cancel(refusedError{err})
				}
			case <-ctx.Done():
			}
		}
	}()
	c, err := connect(ctx)
	if refused := (refusedError{}); err != nil && errors.As(context.Cause(ctx), &refused) {
		err = fmt.Errorf("%w: %w", holdfast.ErrDisconnected, refused.error)
	}
	return c, err
}

// allRefuse returns nil if an address accepts connections, or might soon.
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
