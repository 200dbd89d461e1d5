package doctor

import (
	"context"

	"github.com/holdfast-go/holdfast/zklock"
)

// seePermissions is what a check tells that would have to make a znode, and may
// not: the check of permissions has told why.
const seePermissions = "not looked at, for want of permissions"

// containers makes a container znode: servers older than 3.5 close the
// connection on the request.
func (e *ensemble) containers(ctx context.Context) ([]Finding, error) {
	err := e.makeRoot(ctx)
	if err == nil {
		err = e.makeContainer(ctx, join(e.Options.Root, probeName()))
	}
	if refusedByZooKeeper(err) {
		return only(ok(seePermissions))
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
		return only(ok(seePermissions))
	}
	client, err := zklock.Dial(ctx, []string{e.main.addr}, &e.Options)
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := cleaning(e.Timeout)
		defer cancel()
		_ = client.Close(ctx)
	}()
	key := probeName()
	e.made = append(e.made, join(e.Options.Root, key))
	f, err := tryLock(ctx, client.Client, key, e.Timeout)
	if refusedByZooKeeper(err) {
		return only(ok(seePermissions))
	}
	if err != nil {
		return nil, err
	}
	return only(f)
}
