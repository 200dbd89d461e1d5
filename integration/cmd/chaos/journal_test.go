package main

import (
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// TestFencedRegister_LateToken_IsRefused: the register accepts the writes of readers after the last writer, in any order, and refuses
// earlier writes.
func TestFencedRegister_LateToken_IsRefused(t *testing.T) {
	j, err := newJournal(filepath.Join(t.TempDir(), historyFile), history.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		token    uint64
		shared   bool
		accepted bool
	}{
		{3, false, true},
		{6, true, true},
		{5, true, true},
		{4, false, true},
		{2, true, false},
		{3, false, false},
		{7, false, true},
		{6, true, false},
	} {
		j.add(history.Record{What: history.Wrote, Key: "k", Token: c.token, Mode: history.Mode{Shared: c.shared}})
		if got := j.all()[len(j.all())-1].Accepted; got != c.accepted {
			t.Errorf("token %d, shared: %v: accepted: %v", c.token, c.shared, got)
		}
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
}
