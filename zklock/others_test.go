package zklock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
)

// createNode creates a node as another client would, and returns its zxid.
func createNode(t *testing.T, client *wired, path, data string, flags int32) int64 {
	t.Helper()
	name, err := client.Conn().Create(virtualRoot+"/"+path, []byte(data), flags, zk.WorldACL(zk.PermAll))
	if err != nil {
		t.Fatal(err)
	}
	_, stat, err := client.Conn().Exists(name)
	if err != nil {
		t.Fatal(err)
	}
	return stat.Czxid
}

// observed collects the tokens that an observer of a key is told, 0 for no holder. The function that it returns returns them.
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
