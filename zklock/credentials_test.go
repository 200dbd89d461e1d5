package zklock_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Servers that demand credentials hang up on any request that comes before them.
func TestCredentialsComeFirst(t *testing.T) {
	const tries = 100
	synctest.Test(t, func(t *testing.T) {
		latency := func() time.Duration { return time.Duration(rand.N(int64(5 * time.Millisecond))) }
		e := zkfake.New(zkfake.Config{Latency: latency, Closed: true})
		t.Cleanup(e.Close)
		for range tries {
			client := dialWired(t, e, zklock.Options{Auth: []zklock.Auth{{Scheme: "digest", Credentials: "user:password"}}})
			if n := client.dials.Load(); n != 1 {
				t.Fatalf("%d connections until Dial has returned", n)
			}
			acquire(t, client, "a")
			client.Break()
			time.Sleep(time.Second)
			if err := client.Close(inTime(t)); err != nil {
				t.Error(err)
			}
			if n := client.dials.Load(); n != 2 {
				t.Fatalf("%d connections, of which one was broken", n)
			}
		}
	})
}

// Clients without credentials are refused in every call, however many wait, and whichever request had the server's answer.
func TestNoCredentials_ServerDemandsThem_EveryCallIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		latency := func() time.Duration { return time.Duration(rand.N(int64(5 * time.Millisecond))) }
		e := zkfake.New(zkfake.Config{Latency: latency, Closed: true})
		t.Cleanup(e.Close)
		client := dialWired(t, e, zklock.Options{})
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				_, acquire := client.Acquire(inTime(t), "a")
				_, try := client.TryAcquire(inTime(t), "a")
				_, inspect := client.Inspect(inTime(t), "a")
				for call, err := range map[string]error{"Acquire": acquire, "TryAcquire": try, "Inspect": inspect} {
					if !errors.Is(err, holdfast.ErrDenied) {
						t.Errorf("%s: %v, want ErrDenied", call, err)
					}
				}
			})
		}
		calls.Wait()
		_ = client.Close(inTime(t))
	})
}

// A server that answers everything but credentials is left: no call waits for ever behind them.
func TestCredentials_NoAnswer_ServerIsLeft(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		link, dials := e.Link(), 0
		ctx := network.With(inTime(t), func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			conn, err := link.Dial(ctx, network, address)
			return &deafToAuth{conn, dials == 1}, err
		})
		auth := []zklock.Auth{{Scheme: "digest", Credentials: "user:password"}}
		client, err := zklock.Dial(ctx, e.Addrs(), &zklock.Options{Root: virtualRoot, SessionTimeout: virtualSession, Auth: auth})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Close(inTime(t)); err != nil {
			t.Error(err)
		}
	})
}

// deafToAuth loses requests with credentials.
type deafToAuth struct {
	net.Conn
	deaf bool
}

func (c *deafToAuth) Write(b []byte) (int, error) {
	if c.deaf && len(b) >= 12 && binary.BigEndian.Uint32(b[8:]) == opSetAuth {
		return len(b), nil
	}
	return c.Conn.Write(b)
}
