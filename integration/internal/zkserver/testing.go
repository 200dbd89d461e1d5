package zkserver

import "testing"

// New is [Start] for tests: it fails tb on error, and closes the server when tb ends.
func New(tb testing.TB, cfg Config) *Server {
	tb.Helper()
	s, err := Start(tb.Context(), cfg)
	return use(tb, s, err)
}

// NewEnsemble is [StartEnsemble] for tests: it fails tb on error, and closes the ensemble when tb ends.
func NewEnsemble(tb testing.TB, cfg Config) *Ensemble {
	tb.Helper()
	e, err := StartEnsemble(tb.Context(), cfg)
	return use(tb, e, err)
}

// Find is [Open] for tests: it fails tb on error, and closes what Open has started when tb ends.
func Find(tb testing.TB, cfg Config) *Target {
	tb.Helper()
	t, err := Open(tb.Context(), cfg)
	use(tb, t, err)
	tb.Logf("ZooKeeper: %s at %v", t.Source(), t.Addrs())
	return t
}

func use[T interface {
	LogTail() string
	Close()
}](tb testing.TB, service T, err error) T {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of ZooKeeper ends:\n%s", service.LogTail())
		}
		service.Close()
	})
	return service
}
