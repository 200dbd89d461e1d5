package dynamolock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// TestSendsAreBounded checks what a call that has lost a race for days remembers of its requests: when the last ones were
// sent, and for the others a moment that is not too late.
func TestSendsAreBounded(t *testing.T) {
	began := driver.Instant{Mono: time.Unix(1, 0), Wall: time.Unix(1, 0)}
	c := &contender{began: began}
	sent := func(n int) driver.Instant { return began.Add(time.Duration(n) * time.Second) }
	const requests = 100_000
	for n := 1; n <= requests; n++ {
		c.numbered(sent(n))
		c.inDoubt = lastOf(append(c.inDoubt, ordered(c.touches)))
	}
	if len(c.sends) > 100 || cap(c.sends) > 1000 || len(c.inDoubt) > 100 || cap(c.inDoubt) > 1000 {
		t.Errorf("%d times are remembered (room for %d), and %d requests in doubt (%d)", len(c.sends), cap(c.sends), len(c.inDoubt), cap(c.inDoubt))
	}
	for n, want := range map[uint64]driver.Instant{requests: sent(requests), requests - 5: sent(requests - 5), 1: began, requests + 1: began} {
		if got := c.sentAs(ordered(n)); got != want {
			t.Errorf("request %d was sent at %v, want %v", n, got, want)
		}
	}
}
