package integration_test

import (
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/zklock"
)

// TestApplicationWhileReconnecting has applications use the connection of their client all the time, and breaks it again and
// again. go-zookeeper renews its watches from the zxid of the last reply that it has read on, without synchronisation: the
// race detector would see a reply to the application that comes before, and what happened in the outage would be hidden.
func TestApplicationWhileReconnecting(t *testing.T) {
	start(t)
	p := proxy(t, server(t).Addr())
	clients := make([]*zklock.Client, 5)
	var applications sync.WaitGroup
	over := make(chan struct{})
	for i := range clients {
		clients[i] = dialServers(t, zklock.Options{SessionTimeout: longest}, p.Addr())
		for range 20 {
			take(t, clients[i], newKey(t)) // it watches its node
		}
		for range 5 {
			applications.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
						_, _ = clients[i].Conn().Sync("/")
					}
				}
			})
		}
	}
	for range 20 {
		p.Drop()
		for _, c := range clients {
			eventually(t, "the application has an answer", func() bool { return errOf(c.Conn().Sync("/")) == nil })
		}
	}
	close(over)
	applications.Wait()
}
