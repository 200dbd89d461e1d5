package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/zktimes"
	"github.com/holdfast-go/holdfast/zklock"
)

// writeProbes is how many writes are made at a time to see how long they take.
const writeProbes = 10

// write measures writes to the quorum: a session is kept alive by such a one.
func (e *ensemble) write(ctx context.Context) ([]Finding, error) {
	err := e.makeRoot(ctx)
	if err == nil {
		e.made = append(e.made, e.probePath())
		err = do(ctx, e.main, func() error {
			_, err := e.main.conn().Create(e.probePath(), nil, zk.FlagEphemeral, e.acl())
			return err
		})
	}
	if refusedByZooKeeper(err) {
		return nil, errUnseen
	}
	if err != nil {
		return nil, step("create", e.probePath(), err)
	}
	e.written = true
	if err := e.sample(ctx); err != nil {
		return nil, err
	}
	return only(judgeWrites(e.writes, e.main.client.SessionTimeout()))
}

// probePath is that of the znode to which probes are written.
func (e *ensemble) probePath() string { return join(e.root, e.probe) }

// acl is that of nodes in a queue.
func (e *ensemble) acl() []zk.ACL {
	if len(e.Options.ACL) == 0 {
		return zk.WorldACL(zk.PermAll)
	}
	return e.Options.ACL
}

// sample writes some times to the probe. Each answer has the time of the write,
// by the wall clock of the leader.
func (e *ensemble) sample(ctx context.Context) error {
	for range writeProbes {
		sent := time.Now()
		stat, err := call(ctx, e.main, func() (*zk.Stat, error) { return e.main.conn().Set(e.probePath(), nil, -1) })
		if err != nil {
			return step("write", e.probePath(), err)
		}
		answered := time.Now()
		e.writes = append(e.writes, answered.Sub(sent))
		e.leader.note(sent, answered, time.UnixMilli(stat.Mtime))
	}
	return nil
}

// judgeWrites compares writes, each of which is a round trip, with the time that
// there is for them. A session that holds locks makes a sync and a write per sixth
// of its timeout, and what its deadline counts from was sent some of these before:
// with round trips of a seventh of the timeout and more it passes between two of
// them; with more than a twentieth, one that fails costs the locks. A client leaves a
// server that takes a quarter.
func judgeWrites(writes latencies, timeout time.Duration) Finding {
	told := fmt.Sprintf("writes to the quorum took %v; the session timeout is %v", writes, timeout)
	cure := fmt.Sprintf("give a --lease of %v or more, twenty times a write; or see to the network, and to the servers' disks (fsync), load and garbage collection",
		figure(20*writes.median()))
	const disturbed = "see to the servers' disks (fsync), load and garbage collection, and to the network; or give a longer --lease"
	t := zktimes.Of(timeout, 0, 0)
	switch {
	case writes.median() >= timeout/10:
		return problem(cure, "%s: too short for such round trips, locks are lost although nothing fails", told)
	case writes.worst() >= t.Answer:
		return problem(disturbed, "%s: holders leave a server that takes a quarter of it", told)
	case writes.median() >= timeout/20:
		return warning(cure, "%s: one heartbeat that fails costs the locks", told)
	case writes.worst() >= t.Heartbeat:
		return warning(disturbed, "%s, and there is to be a write per sixth of it", told)
	}
	return ok("%s", told)
}

// clock compares the wall clocks, for whoever reads logs of both.
func (e *ensemble) clock(context.Context) ([]Finding, error) {
	if !e.leader.known {
		return nil, errUnseen
	}
	return only(e.leader.skew("the leader"))
}

// containers makes a container znode: servers older than 3.5 close the
// connection on the request.
func (e *ensemble) containers(ctx context.Context) ([]Finding, error) {
	err := e.makeRoot(ctx)
	if err == nil {
		err = e.makeContainer(ctx, join(e.root, probeName()))
	}
	if refusedByZooKeeper(err) {
		return nil, errUnseen
	}
	if ctx.Err() != nil {
		return nil, err
	}
	return only(judgeContainer(err))
}

func judgeContainer(err error) Finding {
	if err != nil {
		return problem("upgrade the servers to 3.5 or newer; programs can set zklock.Options.PersistentParents instead",
			"no container znode can be made: %v", err)
	}
	return ok("the parents of locks are containers, which the servers remove some time after they have become empty")
}

// trial takes a lock of its own, as a program would, in a session of its own:
// what an acquisition that is given up may leave is gone with the session.
func (e *ensemble) trial(ctx context.Context) ([]Finding, error) {
	if err := e.makeRoot(ctx); refusedByZooKeeper(err) {
		return nil, errUnseen
	}
	client, err := zklock.Dial(ctx, []string{e.main.addr + e.chroot}, &e.Options)
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := cleaning(e.Timeout)
		defer cancel()
		_ = client.Close(ctx)
	}()
	key := probeName()
	e.made = append(e.made, join(e.root, key))
	f, err := tryLock(ctx, client.Client, key, e.Timeout)
	if refusedByZooKeeper(err) {
		return nil, errUnseen
	}
	if err != nil {
		return nil, err
	}
	return only(f)
}
