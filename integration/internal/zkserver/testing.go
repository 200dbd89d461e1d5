package zkserver

import (
	"testing"
)

// New is [Start] for tests: it fails tb on error, and closes the server when tb ends.
func New(tb testing.TB, cfg Config) *Server {
	tb.Helper()
	s, err := Start(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		logTail(tb, s)
		s.Close()
	})
	return s
}

func logTail(tb testing.TB, s *Server) {
	if tb.Failed() {
		tb.Logf("log of ZooKeeper at %s ends:\n%s", s.Addr(), s.LogTail())
	}
}
