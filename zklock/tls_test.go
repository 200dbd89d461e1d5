package zklock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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

// TestTLSConfig_ServerDemandsCertificate checks that a reconnection uses a certificate that came into the configuration after the first
// connection, and that without one the last heartbeat before the loss names the server's alert.
func TestTLSConfig_ServerDemandsCertificate(t *testing.T) {
	secure := httptest.NewTLSServer(nil) // for its certificate
	secure.Close()
	for name, renewed := range map[string]bool{"renewed": true, "not renewed": false} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				link := e.Link()
				var demands, has atomic.Bool
				ctx := network.With(t.Context(), func(ctx context.Context, network, address string) (net.Conn, error) {
					upstream, err := link.Dial(ctx, network, address)
					if err != nil {
						return nil, err
					}
					client, conn := net.Pipe()
					server := tls.Server(readAhead(conn), &tls.Config{
						Certificates: secure.TLS.Certificates,
						ClientAuth:   map[bool]tls.ClientAuthType{true: tls.RequireAnyClientCert}[demands.Load()],
					})
					go func() {
						_, _ = io.Copy(upstream, server)
						_ = upstream.Close()
					}()
					go func() {
						_, _ = io.Copy(server, upstream)
						_ = conn.Close()
					}()
					return client, nil
				})
				var failure atomic.Value
				client, err := zklock.Dial(ctx, e.Addrs()[:1], &zklock.Options{
					Root: virtualRoot, SessionTimeout: virtualSession,
					TLSConfig: func() (*tls.Config, error) {
						config := &tls.Config{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
						if has.Load() {
							config.Certificates = secure.TLS.Certificates
						}
						return config, nil
					},
					Hooks: holdfast.Hooks{Heartbeat: func(h holdfast.Heartbeat) {
						if h.Err != nil {
							failure.Store(h.Err.Error())
						}
					}},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				lock, err := client.Acquire(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				has.Store(renewed)
				demands.Store(true)
				link.Break()
				time.Sleep(2 * virtualSession)
				synctest.Wait()
				if lost := errors.Is(lock.Err(), holdfast.ErrSessionExpired); lost == renewed {
					t.Errorf("the lock: %v", lock.Err())
				}
				if text, _ := failure.Load().(string); !renewed && !strings.Contains(text, "remote error: tls: certificate required") {
					t.Errorf("the last heartbeat failed with %q", text)
				}
			})
		})
	}
}

// aheadConn reads ahead, as a socket does: net.Pipe has no buffer, and without one an alert and a request would wait for each other.
type aheadConn struct {
	net.Conn
	chunks chan []byte
	rest   []byte
}

func readAhead(conn net.Conn) *aheadConn {
	a := &aheadConn{Conn: conn, chunks: make(chan []byte, 1000)}
	go func() {
		defer close(a.chunks)
		for {
			b := make([]byte, 4096)
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			a.chunks <- b[:n]
		}
	}()
	return a
}

func (a *aheadConn) Read(b []byte) (int, error) {
	if len(a.rest) == 0 {
		chunk, open := <-a.chunks
		if !open {
			return 0, io.EOF
		}
		a.rest = chunk
	}
	n := copy(b, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}
