package httpfence

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fencing"
)

// A Store remembers the greatest token of each resource. sqlfence.Store is one; [Memory] is one for tests.
type Store interface {
	// Hold claims the resource. It fails with fencing.ErrStale if a greater token has claimed it, and remembers the token otherwise,
	// for good. Until release is called, every other Hold of the resource waits, or fails if its ctx ends. A hold outlives its ctx.
	Hold(ctx context.Context, resource string, token holdfast.Token) (release func(), err error)
}

// Serial runs next for one request per resource at a time, if the request's token is not stale. resource returns the name of what a
// request writes to, usually the lock's key. The package says what this promises. A request waits for its turn until its client gives
// up, and the handler finds the token by [Token].
//
// Errors of the store are not logged: wrap the store to log them.
func Serial(store Store, resource func(*http.Request) string, next http.Handler) http.Handler {
	return PassOn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release, err := store.Hold(r.Context(), resource(r), Token(r.Context()))
		if err != nil {
			Refuse(w, err)
			return
		}
		defer release()
		next.ServeHTTP(w, r)
	}))
}

// PassOn runs next for each request with a token, and claims nothing. The handler claims the resource with [Token], and answers with
// [Refuse] if it cannot.
func PassOn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := r.Header.Values(Header)
		if len(values) == 0 {
			http.Error(w, "the request has no "+Header, http.StatusPreconditionRequired)
			return
		}
		token, err := strconv.ParseUint(values[0], 10, 64)
		if err != nil || len(values) > 1 || fencing.Check(Header, holdfast.Token(token)) != nil {
			http.Error(w, "the request has no valid "+Header, http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tokenKey{}, holdfast.Token(token))))
	})
}

type tokenKey struct{}

// Token returns the token of the request whose context ctx is, within [PassOn] or [Serial]; elsewhere 0, which no claim accepts.
func Token(ctx context.Context) holdfast.Token {
	token, _ := ctx.Value(tokenKey{}).(holdfast.Token)
	return token
}

// Refuse answers a request whose claim failed with err. The answer to errors other than [fencing.ErrStale] and bad input has no
// details.
func Refuse(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, fencing.ErrStale):
		w.Header().Set(RefusedHeader, stale)
		http.Error(w, err.Error(), http.StatusPreconditionFailed)
	case errors.Is(err, holdfast.ErrInvalid):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		http.Error(w, "the claim of the token failed", http.StatusServiceUnavailable)
	}
}
