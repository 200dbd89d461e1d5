package zklock

import (
	"testing"
	"time"
)

// TestLateExpected tests what the client looks for, and that it does not do so for ever:
// a client may live for months and lose a reply an hour.
func TestLateExpected(t *testing.T) {
	before, now := testSession(1), testSession(2)
	patience := now.times().Late
	s := &late{stopped: true} // sets no timer
	s.expect(before, "/a", "old", "")
	s.expect(now, "/a", "1", "kept")
	s.expect(now, "/a", "2", "")
	s.expect(now, "/b", "3", "")
	first := s.expectedLocked(now, time.Now())
	if len(first) != 2 || len(first["/a"]) != 2 || len(first["/b"]) != 1 || first["/a"][0].keep != "kept" || len(s.all) != 3 {
		t.Errorf("%+v of %+v", first, s.all)
	}
	if some := s.expectedLocked(now, time.Now().Add(patience-time.Minute/2)); len(some) != 2 {
		t.Errorf("too early forgotten: %+v", some)
	}
	if some := s.expectedLocked(now, time.Now().Add(patience+time.Second)); len(some) != 0 || len(s.all) != 0 {
		t.Errorf("never forgotten: %+v, %+v", some, s.all)
	}
}
