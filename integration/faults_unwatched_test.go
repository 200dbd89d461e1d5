package integration_test

import (
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
)

// Z28. A client's watches are not set again after a reconnect. A holder whose node is
// deleted then learns of it from a heartbeat.
func TestBreakIsHeardWithoutAWatch(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, p := proxied(t, nil)
	key := newKey(t)
	lock := granted(t, acquiring(limited(t), client, key))
	path := nodeOf(t, client, lock)
	reads(t, p, 1)
	events := client.Events()
	p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
		if f.Dir == faultproxy.ToServer && (f.Op == faultproxy.OpSetWatches || f.Op == faultproxy.OpSetWatches2) {
			return faultproxy.DropFrame
		}
		return faultproxy.Pass
	})
	reconnects(t, client, p)
	if err := conn.Delete(path, -1); err != nil {
		t.Fatal(err)
	}
	lostTo(t, lock, events, holdfast.ErrBroken)
	if n := p.Count(faultproxy.ToClient, faultproxy.OpSetWatches); n != 0 {
		t.Errorf("%d times the watches were set again", n)
	}
	checkClean(t, conn, key)
}
