package zklock

import (
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

func init() { strict.On() }

// testSession is a session with the default timeout.
func testSession(id int64) *zkconn.Session {
	return zkconn.NewSession(id, nil, (&Options{}).times(DefaultSessionTimeout))
}
