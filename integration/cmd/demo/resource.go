package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/holdfast-go/holdfast"
)

// errStale is the resource's refusal of an old token.
var errStale = errors.New("a newer token has already written")

// resource is what the lock protects: a value that remembers the greatest
// token that has written it, and refuses smaller ones.
type resource struct {
	listener net.Listener
	server   http.Server

	mu      sync.Mutex
	writer  string
	highest holdfast.Token
}

func startResource() (*resource, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &resource{listener: listener}
	r.server.Handler = r
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

func (r *resource) addr() string { return r.listener.Addr().String() }

func (r *resource) close() { _ = r.server.Close() }

// last returns the last writer and its token.
func (r *resource) last() (string, holdfast.Token) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writer, r.highest
}

func (r *resource) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	token, err := strconv.ParseUint(req.FormValue("token"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if holdfast.Token(token) < r.highest {
		http.Error(w, fmt.Sprintf("written with token %d since", r.highest), http.StatusConflict)
		return
	}
	r.highest, r.writer = holdfast.Token(token), req.FormValue("by")
}

// write is the client's side. It fails with errStale if the resource refuses.
func write(addr, by string, token holdfast.Token) error {
	resp, err := http.PostForm("http://"+addr, map[string][]string{"by": {by}, "token": {token.String()}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusConflict:
		return fmt.Errorf("%w: %s", errStale, text)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}
