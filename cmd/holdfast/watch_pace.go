package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
)

// How often to look. A look at ZooKeeper reads the node of each contender: waiters
// by the thousand are looked at seldomer, so that a watch never makes more than
// 200 requests a second.
const (
	zookeeperInterval = 250 * time.Millisecond
	zookeeperIdle     = 30 * time.Second
	perNode           = 5 * time.Millisecond
	dynamoInterval    = 2 * time.Second
)

// paceBy decides when to look: on ZooKeeper when it tells of a change, and for
// safety's sake from time to time; on DynamoDB, which tells nothing, regularly.
// There the reads are consistent, which costs twice: a read of some replica may
// show what is older than what the read before has shown.
func (w *watcher) paceBy(c *client, root string, interval time.Duration) {
	standard := dynamoInterval
	if c.zookeeper != nil {
		standard = zookeeperInterval
	}
	if interval == 0 {
		interval = standard
	}
	w.idle = interval
	w.pause = func(holdfast.Info) time.Duration { return interval }
	if c.zookeeper != nil {
		w.idle = max(interval, zookeeperIdle)
		w.pause = func(info holdfast.Info) time.Duration {
			return max(interval, time.Duration(2+len(info.Queue))*perNode)
		}
		w.alarm = &lockAlarm{conn: c.zookeeper.Conn(), path: lockPath(root, w.key)}
	}
}

// A lockAlarm rings when something is created or deleted below a lock's znode. It
// has one watch at a time in the server, which ends with the session. A nil one
// never rings.
type lockAlarm struct {
	conn *zk.Conn
	path string
	ring <-chan zk.Event // nil if it is not set
}

// set sets it, if it is not. Without a connection it waits for one. If it cannot
// be set, the looks that are due anyway must do.
func (l *lockAlarm) set() {
	if l == nil || l.ring != nil {
		return
	}
	const attempts = 3 // the node may come and go between the requests
	for range attempts {
		_, _, ring, err := l.conn.ChildrenW(l.path)
		if errors.Is(err, zk.ErrNoNode) {
			var exists bool
			if exists, _, ring, err = l.conn.ExistsW(l.path); exists {
				continue
			}
		}
		if err == nil {
			l.ring = ring
		}
		return
	}
}

// rings is what an alarm that is set rings by. Nobody may be setting it.
func (l *lockAlarm) rings() <-chan zk.Event {
	if l == nil {
		return nil
	}
	return l.ring
}

// off notes that it has rung.
func (l *lockAlarm) off() { l.ring = nil }

// lockPath returns the znode whose children are the queue for a key, as the
// documentation of zklock describes it.
func lockPath(root, key string) string {
	if strings.HasPrefix(key, "/") {
		return key
	}
	var b strings.Builder
	b.WriteString(root + "/")
	for _, r := range key {
		forbidden := r == '/' || r == '%' || r <= 0x1f || 0x7f <= r && r <= 0x9f || 0xd800 <= r && r <= 0xf8ff || r >= 0xfff0
		if !forbidden {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			const hex = "0123456789ABCDEF"
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// unread returns unix.EPIPE when nobody reads a pipe or a socket any more. To
// find out by writing might take until the next change. It does not return for
// what cannot lose its reader.
func unread(w io.Writer) error {
	f, ok := w.(*os.File)
	if !ok {
		select {}
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		select {}
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	for {
		if n, err := unix.Poll(fds, -1); n > 0 && err == nil {
			return unix.EPIPE
		}
	}
}
