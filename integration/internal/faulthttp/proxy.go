package faulthttp

import (
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// Proxy is a [Transport] for other processes: a server on the loopback interface that forwards requests. Its Transport
// decides the fate of each request; the proxy adds connection faults. It is safe for concurrent use.
type Proxy struct {
	// Transport forwards the requests and injects their faults. Close closes it.
	Transport *Transport

	upstream *url.URL
	port     *child.PortLease
	server   *http.Server
	wg       sync.WaitGroup // of listeners and connections

	mu       sync.Mutex
	listener net.Listener // nil while new connections are refused
	conns    map[*proxied]struct{}
	closed   bool
}

// Listen starts a proxy on a free port. upstream is the URL of a server that does not check the signed host; it need not be
// up yet. Close the proxy after use.
func Listen(upstream string) (*Proxy, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, fmt.Errorf("faulthttp: upstream: %w", err)
	}
	if u.Scheme == "" || u.Host == "" {
		return nil, fmt.Errorf("faulthttp: upstream: %q is not a URL with a scheme and a host", upstream)
	}
	port, err := child.LeasePort()
	if err != nil {
		return nil, fmt.Errorf("faulthttp: %w", err)
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DisableCompression = true // the client is to get what the server has sent
	base.IdleConnTimeout = idle
	base.MaxIdleConnsPerHost = base.MaxIdleConns
	p := &Proxy{Transport: New(base), upstream: u, port: port, conns: make(map[*proxied]struct{})}
	p.server = &http.Server{Handler: p, ErrorLog: log.New(io.Discard, "", 0)}
	if err := p.Accept(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

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
	p.wg.Go(func() { _ = p.server.Serve(&listener{l, p}) }) // until the listener is closed
	return nil
}

// Drop resets all live connections, once: idle ones, and those with a request under way.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked()
}

func (p *Proxy) dropLocked() {
	for c := range p.conns {
		c.reset()
	}
}

// Conns is the number of live connections.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
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

// hopByHop are the headers of a connection rather than of a request.
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// ServeHTTP implements [http.Handler] for the proxy's own server.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host = p.upstream.Scheme, p.upstream.Host
	for _, name := range hopByHop {
		out.Header.Del(name)
	}
	resp, err := p.Transport.RoundTrip(out)
	if err != nil {
		hangUp(w, err)
		return
	}
	defer resp.Body.Close()
	maps.Copy(w.Header(), resp.Header)
	for _, name := range hopByHop {
		w.Header().Del(name)
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body) // it fails when the client has gone
}

// hangUp shows the client an error as a network would.
func hangUp(w http.ResponseWriter, err error) {
	conn, _, hijackErr := http.NewResponseController(w).Hijack()
	if hijackErr != nil {
		panic(http.ErrAbortHandler) // the connection has gone
	}
	c := conn.(*proxied)
	defer c.Close()
	if errors.Is(err, EOF) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		return
	}
	c.reset()
}
