package child

import "testing"

// TestRaces: reports about go-zookeeper alone are left out.
func TestRaces(t *testing.T) {
	const (
		theirs = "  github.com/go-zookeeper/zk.(*Conn).recvLoop()\n      conn.go:1 +0x1\n"
		ours   = "  github.com/holdfast-go/holdfast/zklock/internal/zkconn.(*Link).Retry()\n      calls.go:1 +0x1\n"
	)
	report := func(first, second string) string {
		return "==================\nWARNING: DATA RACE\nRead at 0x01 by goroutine 7:\n" + first +
			"\nPrevious write at 0x01 by goroutine 8:\n" + second + "\nGoroutine 7 (running) created at:\n" + ours + "==================\n"
	}
	for log, want := range map[string]int{
		"a line\n":             0,
		report(theirs, theirs): 0,
		report("  runtime.mapaccess1()\n      map.go:1 +0x1\n"+theirs, theirs): 0,
		report(ours, theirs):                        1,
		report(theirs, ours):                        1,
		report(theirs, theirs) + report(ours, ours): 1,
	} {
		if got := len(Races(log)); got != want {
			t.Errorf("%d reports, want %d, in\n%s", got, want, log)
		}
	}
}
