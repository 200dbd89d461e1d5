package faulthttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// server counts the requests that it answers.
type server struct {
	*httptest.Server
	arrived atomic.Int32
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		s.arrived.Add(1)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		io.WriteString(w, "{}")
	}))
	t.Cleanup(s.Close)
	return s
}

// route is a way from a client to a server, through a transport that breaks it.
type route struct {
	client *http.Client
	url    string
}

// direct is the route of a client that uses the transport itself, which closes before the server does.
func direct(t *testing.T, s *server) (*Transport, route) {
	tr := New(http.DefaultTransport.(*http.Transport).Clone())
	t.Cleanup(tr.Close)
	return tr, route{tr.Client(), s.URL}
}

// newProxy makes a proxy that closes before the server does.
func newProxy(t *testing.T, s *server) *Proxy {
	t.Helper()
	p, err := Listen(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// through is the route of a proxy client that shares its connections with nobody.
func through(t *testing.T, p *Proxy) route {
	t.Helper()
	base := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(base.CloseIdleConnections)
	return route{&http.Client{Transport: base}, p.URL()}
}

// routes are the two kinds of them, each with a transport of its own.
var routes = map[string]func(*testing.T, *server) (*Transport, route){
	"transport": direct,
	"proxy": func(t *testing.T, s *server) (*Transport, route) {
		p := newProxy(t, s)
		return p.Transport, through(t, p)
	},
}
