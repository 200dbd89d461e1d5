package main

import (
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

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
		conn, path := c.zookeeper.Conn(), lockPath(root, w.key)
		w.alarm = func() <-chan zk.Event { return lockAlarm(conn, path) }
	}
}

// lockAlarm sets a watch that rings when something is created or deleted below a
// lock's znode, and returns what it rings by. Whoever has one does not set
// another, so there is one in the server, which ends with the session. Without a
// connection it waits for one. It returns nil if it cannot: the looks that are
// due anyway must do then.
func lockAlarm(conn *zk.Conn, path string) <-chan zk.Event {
	const attempts = 3 // the node may come and go between the requests
	for range attempts {
		_, _, ring, err := conn.ChildrenW(path)
		exists := false
		if errors.Is(err, zk.ErrNoNode) {
			exists, _, ring, err = conn.ExistsW(path)
		}
		if err != nil {
			return nil
		}
		if !exists {
			return ring
		}
	}
	return nil
}

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
