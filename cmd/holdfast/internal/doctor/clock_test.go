package doctor

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	sent := time.Now()
	for ahead, test := range map[time.Duration]struct {
		found  string
		status Status
	}{
		0:                 {"it is about 0s ahead of", OK},
		time.Hour:         {"it is about 1h0m0s ahead of", Problem},
		-3 * time.Second:  {"it is about 3s behind", OK},
		-6 * time.Minute:  {"it is about 6m0s behind", Problem},
		299 * time.Second: {"it is about 4m59s ahead of", OK},
	} {
		var c clock
		c.note(sent, sent.Add(200*time.Millisecond), sent.Add(100*time.Millisecond+ahead))
		is(t, c.skew("it"), OK, test.found, "")
		if f := judgeClock(c); f.Status != test.status {
			t.Errorf("%v ahead: %+v, want %s", ahead, f, test.status)
		}
	}
}
