package faulthttp

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// Proxy is a [Transport] for other processes: a server on the loopback interface that forwards requests. Its Transport
// decides the fate of each request; the proxy adds connection faults. It is safe for concurrent use.
type Proxy struct {
	// Transport forwards the requests and injects their faults. Close closes it.
	Transport *Transport

	port   *child.PortLease
	server *http.Server
	wg     sync.WaitGroup // of listeners and connections

	mu       sync.Mutex
	listener net.Listener // nil while new connections are refused
	conns    map[*net.TCPConn]struct{}
	closed   bool
}

// Listen starts a proxy on a free port. upstream is the URL of a server that does not check the signed host; it need not be
// up yet. Close the proxy after use.
func Listen(upstream string) (*Proxy, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, fmt.Errorf("faulthttp: upstream: %w", err)
	}
	port, err := child.LeasePort()
	if err != nil {
		return nil, fmt.Errorf("faulthttp: %w", err)
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DisableCompression = true // the client gets the server's bytes
	base.IdleConnTimeout = idle
	base.MaxIdleConnsPerHost = base.MaxIdleConns
	p := &Proxy{Transport: New(base), port: port, conns: make(map[*net.TCPConn]struct{})}
	quiet := log.New(io.Discard, "", 0)
	p.server = &http.Server{ConnState: p.accepted, ErrorLog: quiet, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = u.Scheme, u.Host
		},
		Transport:    p.Transport,
		ErrorHandler: hangUp,
		ErrorLog:     quiet,
	}}
	if err := p.Accept(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// idle is how long a connection to the server is kept for the next request. Node.js closes idle ones after
// 5 seconds; a request sent at that moment would fail without an injected fault.
const idle = 3 * time.Second

// URL is the address to give to clients, such as http://127.0.0.1:12345. It stays the same for the life of the proxy.
func (p *Proxy) URL() string { return "http://" + p.addr() }

func (p *Proxy) addr() string { return "127.0.0.1:" + strconv.Itoa(p.port.Port) }

// Refuse closes the listener until Accept: clients get a genuine "connection refused". Live connections continue. The port
// stays reserved.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuseLocked()
}

func (p *Proxy) refuseLocked() {
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
}

// Accept ends a Refuse. After Close it does nothing.
func (p *Proxy) Accept() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.listener != nil {
		return nil
	}
	l, err := child.Listen("tcp4", p.addr())
	if err != nil {
		return fmt.Errorf("faulthttp: %w", err)
	}
	p.listener = l
	p.wg.Go(func() { _ = p.server.Serve(l) }) // until the listener is closed
	return nil
}

// Drop resets all live connections, once.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked()
}

func (p *Proxy) dropLocked() {
	for c := range p.conns {
		reset(c)
	}
}

// Close resets all connections, closes the Transport together with its undelivered requests, frees the port, and returns when
// all goroutines of the proxy have ended. It may be called more than once.
func (p *Proxy) Close() {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.refuseLocked()
	p.dropLocked()
	p.mu.Unlock()
	p.Transport.Close()
	p.wg.Wait()
	if first {
		p.port.Release()
	}
}

// accepted registers a connection, and forgets one that its server goroutine has closed.
func (p *Proxy) accepted(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		p.wg.Add(1)
		p.conns[conn.(*net.TCPConn)] = struct{}{}
		if p.listener == nil {
			reset(conn) // the kernel had accepted it before the proxy refused new ones
		}
	case http.StateHijacked, http.StateClosed:
		delete(p.conns, conn.(*net.TCPConn))
		p.wg.Done()
	}
}

// reset closes a connection with RST: the client sees it at once, and bytes in flight are lost.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// hangUp shows the client an error as a network would.
func hangUp(w http.ResponseWriter, _ *http.Request, err error) {
	conn, _, hijackErr := http.NewResponseController(w).Hijack()
	if hijackErr != nil {
		panic(http.ErrAbortHandler) // the connection has ended
	}
	if errors.Is(err, EOF) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		_ = conn.Close()
		return
	}
	reset(conn)
}
