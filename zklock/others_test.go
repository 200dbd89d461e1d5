package zklock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
)

// observed collects the tokens that an observer of a key is told, 0 for nobody. What it returns returns them.
func observed(t *testing.T, client *wired, key string) func() []holdfast.Token {
	t.Helper()
	var told []holdfast.Token
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for info, err := range client.Observe(ctx, key) {
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			if !info.Stale {
				told = append(told, info.Token)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return func() []holdfast.Token {
		synctest.Wait()
		return told
	}
}
