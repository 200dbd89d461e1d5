package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/zktimes"
	"github.com/holdfast-go/holdfast/zklock"
)

// writeProbes is how many writes are measured.
const writeProbes = 10

// write measures writes to the quorum, which keep a session alive.
func (e *ensemble) write(ctx context.Context) ([]Finding, error) {
	err := e.makeRoot(ctx)
	if err == nil {
		e.made = append(e.made, e.probe)
		err = do(ctx, e.main, func() error {
			_, err := e.main.conn().Create(e.probe, nil, zk.FlagEphemeral, orOpen(e.Options.ACL))
			return err
		})
	}
	if err != nil {
		return nil, unlessDenied(step("create", e.probe, err))
	}
	e.written = true
	for range writeProbes {
		sent := time.Now()
		stat, err := call(ctx, e.main, func() (*zk.Stat, error) { return e.main.conn().Set(e.probe, nil, -1) })
		if err != nil {
			return nil, step("write", e.probe, err)
		}
		answered := time.Now()
		e.writes = append(e.writes, answered.Sub(sent))
		e.leader.note(sent, answered, time.UnixMilli(stat.Mtime)) // the leader's wall clock
	}
	return only(judgeWrites(e.writes, e.main.client.SessionTimeout()))
}

// judgeWrites compares writes, each of which is a round trip, with the time there is for
// them. A session that holds locks makes a sync and a write per sixth of its timeout, and
// its deadline counts from some time before. If a round trip takes a seventh of the timeout,
// the deadline passes between two of them; above a twentieth, a single failure loses the
// locks. A client leaves a server that takes a quarter.
func judgeWrites(writes latencies, timeout time.Duration) Finding {
	told := fmt.Sprintf("writes to the quorum took %v; the session timeout is %v", writes, timeout)
	cure := fmt.Sprintf("give a --lease of %v or more, twenty times a write; or see to the network, and to the servers' disks (fsync), load and garbage collection",
		figure(20*writes.median()))
	const disturbed = "see to the servers' disks (fsync), load and garbage collection, and to the network; or give a longer --lease"
	t := zktimes.Of(timeout, 0, 0, 0)
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

// clock compares the wall clocks, for those who read logs of both.
func (e *ensemble) clock(context.Context) ([]Finding, error) {
	if !e.leader.known {
		return nil, errUnseen
	}
	return only(e.leader.skew("the leader"))
}

// containers creates a container znode. On that request, servers older than 3.5 close the
// connection.
func (e *ensemble) containers(ctx context.Context) ([]Finding, error) {
	err := e.makeRoot(ctx)
	if err == nil {
		err = e.makeContainer(ctx, join(e.root, probeName()))
	}
	if refusedByZooKeeper(err) || ctx.Err() != nil {
		return nil, unlessDenied(err)
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

// trial takes a lock of its own, as a program would, in a session of its own, which takes
// what an abandoned acquisition leaves behind with it.
func (e *ensemble) trial(ctx context.Context) ([]Finding, error) {
	if err := e.makeRoot(ctx); refusedByZooKeeper(err) {
		return nil, errUnseen
	}
	options := e.Options
	options.TLS, options.TLSConfig = e.main.tls, nil
	client, err := zklock.Dial(ctx, []string{e.main.at + e.chroot}, &options)
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
	if err != nil {
		return nil, unlessDenied(err)
	}
	return only(f)
}
