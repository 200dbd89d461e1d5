package zklock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
)

// patience bounds steps that take far less.
const patience = time.Minute

func init() { strict.On() }

// testEngine is an engine, on a clock that stands still, with a session of a server.
func testEngine(t testing.TB, server *zktest.NodeServer) (*engine, *zktest.StillClock) {
	t.Helper()
	clock := zktest.NewStillClock()
	ctx := network.With(t.Context(), server.Dial)
	opts, err := (*Options)(nil).resolve()
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(ctx, zktest.Host(t, clock), opts, "", 0)
	t.Cleanup(e.abort)
	if err := e.link.Connect(ctx, []string{"in memory"}); err != nil {
		t.Fatal(err)
	}
	return e, clock
}

// testSession is a session with the default timeout.
func testSession(id int64) *zkconn.Session {
	return zkconn.NewSession(id, nil, (&Options{}).times(DefaultSessionTimeout))
}
