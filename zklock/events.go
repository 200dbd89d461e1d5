package zklock

import "github.com/holdfast-go/holdfast/zklock/internal/zkconn"

// What the connection reports, and which of holdfast's events users see of it:
//
//	calls may be made: a session was established, or resumed  ->  Ready
//	the connection is lost                                    ->  Disconnected; locks live on until their deadline
//	the lease of the session is over, or the servers end it   ->  Lost (ErrSessionExpired) for each lock held
//	the own node has gone: see own.go                         ->  Lost (ErrBroken, ErrReclaimed) for its lock

// reopened is called by the connection when calls may be made in a session.
func (e *engine) reopened(sess *zkconn.Session) {
	e.heartbeat.reopened(sess)
	e.late.reopened()
	e.tidyAll()
}
