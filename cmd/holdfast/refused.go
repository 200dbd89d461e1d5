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

// refusedAfter is the pause between two checks whether all servers refuse connections. The library waits as long as it may, because
// servers may be starting; a user wants to know of a wrong port sooner.
const refusedAfter = time.Second

// unlessRefused runs connect, and ends it when every address refuses connections.
func unlessRefused[T any](ctx context.Context, addresses []string, connect func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			time.Sleep(refusedAfter)
			if err := allRefuse(ctx, addresses); err != nil {
				cancel(fmt.Errorf("%w: %w", holdfast.ErrDisconnected, err))
			}
		}
	}()
	c, err := connect(ctx)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, holdfast.ErrDisconnected) {
		err = cause
	}
	return c, err
}

// allRefuse returns nil if an address accepts connections, or might soon.
func allRefuse(ctx context.Context, addresses []string) error {
	dialer := net.Dialer{Timeout: refusedAfter}
	var all error
	for _, address := range addresses {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
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
