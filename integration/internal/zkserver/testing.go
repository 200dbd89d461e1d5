package zkserver

import "testing"

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

// NewEnsemble is [StartEnsemble] for tests: it fails tb on error, and closes the ensemble when tb ends.
func NewEnsemble(tb testing.TB, cfg Config) *Ensemble {
	tb.Helper()
	e, err := StartEnsemble(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		for _, s := range e.Servers() {
			logTail(tb, s)
		}
		e.Close()
	})
	return e
}

// NewEmbedded is [StartEmbedded] for tests: it fails tb on error, and closes the server when tb ends.
func NewEmbedded(tb testing.TB, cfg Config) *Embedded {
	tb.Helper()
	s, err := StartEmbedded(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		logTail(tb, s.Server)
		s.Close()
	})
	return s
}

// Find is [Open] for tests: it fails tb on error, and closes what Open has started when tb ends.
func Find(tb testing.TB, cfg Config) *Target {
	tb.Helper()
	t, err := Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Logf("ZooKeeper: %s at %v", t.Source(), t.Addrs())
	tb.Cleanup(func() {
		if tail := t.LogTail(); tb.Failed() && tail != "" {
			tb.Logf("log of ZooKeeper at %v ends:\n%s", t.Addrs(), tail)
		}
		t.Close()
	})
	return t
}

func logTail(tb testing.TB, s *Server) {
	if tb.Failed() {
		tb.Logf("log of ZooKeeper at %s ends:\n%s", s.Addr(), s.LogTail())
	}
}
