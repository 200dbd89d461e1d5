package zklock

import (
	"testing"
	"time"
)

// TestStraysExpected guards what is looked for, and that it is not for ever: a
// client may live for months and lose a reply an hour.
func TestStraysExpected(t *testing.T) {
	before, now := &session{}, &session{}
	before.shortest.Store(int64(time.Second))
	now.shortest.Store(int64(time.Second))
	s := &strays{stopped: true} // sets no timer
	s.expect(before, "/a", "old", "")
	s.expect(now, "/a", "1", "kept")
	s.expect(now, "/a", "2", "")
	s.expect(now, "/b", "3", "")
	first := s.expectedLocked(now, time.Now())
	if len(first) != 2 || len(first["/a"]) != 2 || len(first["/b"]) != 1 || first["/a"][0].keep != "kept" || len(s.all) != 3 {
		t.Errorf("%+v of %+v", first, s.all)
	}
	if late := s.expectedLocked(now, time.Now().Add(strayTime*time.Second-time.Minute/2)); len(late) != 2 {
		t.Errorf("too early forgotten: %+v", late)
	}
	if late := s.expectedLocked(now, time.Now().Add(strayTime*time.Second+time.Second)); len(late) != 0 || len(s.all) != 0 {
		t.Errorf("never forgotten: %+v, %+v", late, s.all)
	}
}
