package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestParseOrder(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]order{
		"stand failover-1 6": {"stand", "failover-1", 6},
		"lead key 1":         {"lead", "key", 1},
	} {
		if got, err := parseOrder(line); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", line, got, err, want)
		}
	}
	for _, line := range []string{"", "stand", "stand key", "stand key six", "stand key 0", "lead key -1", "run key 1"} {
		if got, err := parseOrder(line); err == nil {
			t.Errorf("%q: %v, want an error", line, got)
		}
	}
}

// TestCandidateRefuses guards that a wrong command line or order ends the process, before it sends anything.
func TestCandidateRefuses(t *testing.T) {
	t.Parallel()
	zk := []string{"zookeeper", "127.0.0.1:1", "6s"}
	for name, c := range map[string]struct {
		args  []string
		order string
	}{
		"no arguments":      {nil, ""},
		"no engine":         {[]string{"etcd", "127.0.0.1:1", "6s"}, ""},
		"no duration":       {[]string{"zookeeper", "127.0.0.1:1", "6"}, ""},
		"an unknown order":  {zk, "dance key 1"},
		"nobody stands yet": {zk, "lead key 1"},
	} {
		var out bytes.Buffer
		if err := candidate(t.Context(), c.args, strings.NewReader(c.order+"\n"), &out); err == nil || out.Len() > 0 {
			t.Errorf("%s: %v, and it said %q", name, err, out.String())
		}
	}
}
