package doctor

import (
	"strings"
	"testing"
	"time"
)

// TestJudgeWrites checks from which times on writes are too slow for a lease: a limit of 6 s is that of a session of 24 s.
func TestJudgeWrites(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		median, worst time.Duration
		status        Status
		found, cure   string
	}{
		{ms, ms, OK, "1ms in the median and 1ms at worst of 3; a lock is renewed every 4s, and a request given up after 6s", ""},
		{1199 * ms, 2999 * ms, OK, "2.999s at worst", ""},
		{ms, 3000 * ms, Warning, "one heartbeat that fails", "fsync"},
		{1200 * ms, 1200 * ms, Warning, "one heartbeat that fails", "--lease"},
		{ms, 6000 * ms, Problem, "although nothing fails", "throttling"},
		{2399 * ms, 2399 * ms, Warning, "one heartbeat that fails", "--lease"},
		{2400 * ms, 2400 * ms, Problem, "although nothing fails", "--lease"},
	} {
		f := judgeWrites([]time.Duration{ms, c.median, c.worst}, 4*time.Second, 6*time.Second)
		if f.Status != c.status || !strings.Contains(f.Found, c.found) || !strings.Contains(f.Cure, c.cure) {
			t.Errorf("a median of %v and %v at worst: %+v, want %s, %q, %q", c.median, c.worst, f, c.status, c.found, c.cure)
		}
	}
}
