package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fencing"
	"github.com/holdfast-go/holdfast/fencing/httpfence"
)

// A device is written to by handlers. It compares nothing.
type device struct {
	mu      sync.Mutex
	balance int
	history []holdfast.Token
}

func (d *device) read() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.balance
}

func (d *device) write(balance int, token holdfast.Token) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.balance = balance
	d.history = append(d.history, token)
}

// A service has replicas, whose handlers stop where the turn of the request says.
type service struct {
	turns    sync.Map // of *turn by token
	replicas [2]atomic.Pointer[httptest.Server]
}

// race has clients send requests to the replicas, and restarts one ten times.
func (s *service) race(t *testing.T, fenced bool, handler func() http.Handler) *race {
	restart := func(i int) {
		// The old replica finishes its requests meanwhile.
		if old := s.replicas[i].Swap(httptest.NewServer(handler())); old != nil {
			old.Close()
		}
	}
	var r race
	var sent atomic.Int64
	for i := range s.replicas {
		restart(i)
		defer func() { s.replicas[i].Load().Close() }()
	}
	r.run(t, fenced, func(ctx context.Context, u *turn) error {
		if n, every := int(sent.Add(1)), rounds(fenced)/10; n%every == 0 {
			restart(n / every % len(s.replicas))
		}
		s.turns.Store(u.token, u)
		u.at(atFirst)
		return post(ctx, s.replicas[u.token%2].Load().URL, u.token)
	})
	return &r
}

// post sends a request with a token.
func post(ctx context.Context, url string, token holdfast.Token) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: &httpfence.Transport{Token: token}}).Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if err := httpfence.Refused(resp); err != nil || resp.StatusCode == http.StatusOK {
		return err
	}
	return fmt.Errorf("status %s", resp.Status)
}

// turn returns the turn of a request.
func (s *service) turn(r *http.Request) *turn {
	u, _ := s.turns.Load(httpfence.Token(r.Context()))
	return u.(*turn)
}

// serial races with a handler that writes to a device within a fence, which each replica makes anew.
func serial(t *testing.T, fenced bool, fence func(next http.Handler) http.Handler) {
	var s service
	var d device
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		u := s.turn(r)
		balance := d.read()
		u.at(midway)
		d.write(balance+1, u.token)
		u.at(atTheLast)
	})
	r := s.race(t, fenced, func() http.Handler { return fence(handler) })
	r.judge(t, fenced, d.history, len(d.history)-d.balance)
}

func theDevice(*http.Request) string { return "device" }

// Serial lets no late write reach a device that compares nothing, with a store that is shared and outlives the replicas. PassOn alone lets
// some pass, and so do stores that are not shared.
func TestSerial(t *testing.T) {
	t.Run("no fence", func(t *testing.T) { serial(t, false, httpfence.PassOn) })
	t.Run("stores that are not shared", func(t *testing.T) {
		serial(t, false, func(next http.Handler) http.Handler { return httpfence.Serial(new(httpfence.Memory), theDevice, next) })
	})
	t.Run("memory", func(t *testing.T) { serialWith(t, new(httpfence.Memory)) })
}

func serialWith(t *testing.T, store httpfence.Store) {
	serial(t, true, func(next http.Handler) http.Handler { return httpfence.Serial(store, theDevice, next) })
}

func testSerial(t *testing.T, d *database) {
	serial(t, true, func(next http.Handler) http.Handler { return httpfence.Serial(d.Store(d.open()), theDevice, next) })
}

// PassOn and a claim in the handler's transaction let no late write pass. Without the claim, some pass.
func testPassOn(t *testing.T, d *database) {
	admin := d.open()
	for _, fenced := range []bool{false, true} {
		d.reset(t, admin)
		var s service
		r := s.race(t, fenced, func() http.Handler {
			db := d.open()
			return httpfence.PassOn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := d.write(r.Context(), db, s.turn(r), "passed on", fenced); err != nil {
					httpfence.Refuse(w, err)
				}
			}))
		})
		history, lost := d.history(t, admin)
		r.judge(t, fenced, history, lost)
	}
}

// A request without a valid token reaches no handler, and answers say why.
func TestRequests(t *testing.T) {
	var store httpfence.Memory
	release, err := store.Hold(t.Context(), "device", 33)
	must(t, err)
	release()
	handled := 0
	server := httptest.NewServer(httpfence.Serial(&store, theDevice, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handled++ })))
	defer server.Close()
	for _, test := range []struct {
		tokens  []string
		status  int
		refused error
	}{
		{nil, http.StatusPreconditionRequired, nil},
		{[]string{""}, http.StatusBadRequest, nil},
		{[]string{"0"}, http.StatusBadRequest, nil},
		{[]string{"-1"}, http.StatusBadRequest, nil},
		{[]string{"9223372036854775808"}, http.StatusBadRequest, nil},
		{[]string{"34", "32"}, http.StatusBadRequest, nil},
		{[]string{"34, 32"}, http.StatusBadRequest, nil},
		{[]string{"32"}, http.StatusPreconditionFailed, fencing.ErrStale},
		{[]string{"33"}, http.StatusOK, nil},
		{[]string{"33"}, http.StatusOK, nil},
		{[]string{"34"}, http.StatusOK, nil},
		{[]string{"33"}, http.StatusPreconditionFailed, fencing.ErrStale},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		for _, token := range test.tokens {
			req.Header.Add(httpfence.Header, token)
		}
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		resp.Body.Close()
		if err := httpfence.Refused(resp); resp.StatusCode != test.status || !errors.Is(err, test.refused) {
			t.Errorf("tokens %q: %s, %v; want %d, %v", test.tokens, resp.Status, err, test.status, test.refused)
		}
	}
	if handled != 3 {
		t.Errorf("%d requests were handled, want 3", handled)
	}
	if err := post(t.Context(), server.URL, 0); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("a transport without a token: %v", err)
	}
	release, err = store.Hold(t.Context(), "device", 34)
	must(t, err)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	r.Header.Set(httpfence.Header, "34")
	server.Config.Handler.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a request that gives up waiting: status %d", w.Code)
	}
}

func TestHold(t *testing.T) { hold(t, new(httpfence.Memory)) }

func testHold(t *testing.T, d *database) { hold(t, d.Store(d.open())) }

// A hold outlives the request and keeps other holds waiting. It leaves its token behind.
func hold(t *testing.T, store httpfence.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	release, err := store.Hold(ctx, "hold", 33)
	must(t, err)
	cancel()
	waits, stop := context.WithTimeout(t.Context(), waiting)
	defer stop()
	if _, err := store.Hold(waits, "hold", 34); err == nil || errors.Is(err, fencing.ErrStale) {
		t.Errorf("a hold beside another: %v", err)
	}
	release()
	for _, next := range []struct {
		token holdfast.Token
		want  error
	}{{32, fencing.ErrStale}, {33, nil}, {34, nil}, {33, fencing.ErrStale}, {0, holdfast.ErrInvalid}} {
		release, err := store.Hold(t.Context(), "hold", next.token)
		if !errors.Is(err, next.want) {
			t.Errorf("token %d: %v, want %v", next.token, err, next.want)
		}
		if err == nil {
			release()
		}
	}
}
