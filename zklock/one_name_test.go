package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestOneName_SomeAddressesFail_AnotherServes: one name stands for all servers, of which only the last serves: for a client that dials, and
// for a holder whose server changes.
func TestOneName_SomeAddressesFail_AnotherServes(t *testing.T) {
	mute := func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			for buf := make([]byte, 1<<10); ; {
				if _, err := theirs.Read(buf); err != nil {
					return
				}
			}
		}()
		return ours, nil
	}
	for name, fails := range map[string]network.Dialer{
		"silent": mute,
		"unreachable": func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"refuses": func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") },
		"hangs up": func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			return ours, theirs.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const first, second, third = "10.0.0.1:2181", "[fe80::2%eth0]:2181", "10.0.0.3:2181"
				e := zkfake.New(zkfake.Config{})
				defer e.Close()
				link := e.Link()
				var serving atomic.Value
				serving.Store(third)
				ctx := network.WithNames(t.Context(), func(ctx context.Context, protocol, address string) (net.Conn, error) {
					if address != serving.Load() {
						return fails(ctx, protocol, address)
					}
					return link.Dial(ctx, protocol, e.Addrs()[0])
				}, func(context.Context, string) ([]string, error) {
					return []string{"10.0.0.1", "fe80::2%eth0", "10.0.0.3"}, nil
				})
				ctx, cancel := context.WithTimeout(ctx, zklock.DefaultSessionTimeout)
				defer cancel()
				client, err := zklock.Dial(ctx, []string{"zk.test"}, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				lock, err := client.Acquire(t.Context(), "key")
				if err != nil {
					t.Fatal(err)
				}
				for _, next := range []string{first, second, third, second, first} {
					serving.Store(next)
					link.Break()
					time.Sleep(zklock.DefaultSessionTimeout)
					if err := lock.Verify(t.Context()); err != nil {
						t.Fatalf("the server at %s serves: %v", next, err)
					}
				}
			})
		})
	}
}

// TestDial_NoDeadline_TwoRounds: the error names the cause at each address, and no deadline.
func TestDial_NoDeadline_TwoRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials []time.Duration
		began := time.Now()
		ctx := network.WithNames(t.Context(), func(ctx context.Context, _, address string) (net.Conn, error) {
			dials = append(dials, time.Since(began).Truncate(time.Second/2))
			if address == "10.0.0.2:2181" {
				<-ctx.Done()
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
			}
			return nil, errors.New(address + ": connection refused")
		}, func(context.Context, string) ([]string, error) { return []string{"10.0.0.1", "10.0.0.2"}, nil })
		_, err := zklock.Dial(ctx, []string{"zk.test"}, nil)
		share := zklock.DefaultSessionTimeout / 4
		if want := []time.Duration{0, 0, share + time.Second, share + time.Second}; !slices.Equal(dials, want) {
			t.Errorf("dials at %v, want %v", dials, want)
		}
		if !errors.Is(err, holdfast.ErrDisconnected) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want ErrDisconnected alone", err)
		}
		for _, cause := range []string{"10.0.0.1:2181: connection refused; ", "dial tcp: "} {
			if strings.Count(fmt.Sprint(err), cause) != 1 {
				t.Errorf("%v, want %q once", err, cause)
			}
		}
		dials = nil
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err = zklock.Dial(ctx, []string{"zk.test"}, nil)
		if len(dials) < 10 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a deadline, %d dials: %v", len(dials), err)
		}
	})
}
