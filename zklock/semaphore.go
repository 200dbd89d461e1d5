package zklock

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// A semaphore has two znodes with children: one has a lease for each permit that is taken, the
// other a queue, like that of a lock, in which those who wait for a permit have their places.
// Where these are is up to others that have semaphores: Curator's InterProcessSemaphoreV2 has
// them below the key's znode, and kazoo's Semaphore has the leases there, as the
// children themselves. The limit is the data of the key's znode.
type semaphore struct {
	key    string // the path of the key's znode
	places string
	leases string
	kazoo  bool
}

const (
	placesName = "locks"
	leasesName = "leases"
	leasesDir  = leasesName + "/" // before the name of such a lease in Info.Grant
	kazooQueue = "-__lock__"      // what kazoo adds to the key's path
)

// semaphore returns where a semaphore with this client's form of names is.
func (e *engine) semaphore(key string) semaphore {
	return semaphoreAt(e.paths.lock(key), e.opts.Names == KazooNames)
}

func semaphoreAt(path string, kazoo bool) semaphore {
	if kazoo {
		return semaphore{key: path, places: path + kazooQueue, leases: path, kazoo: true}
	}
	return semaphore{key: path, places: path + "/" + placesName, leases: path + "/" + leasesName}
}

// grant returns what Info.Grant says of a lease.
func (s semaphore) grant(name string) string {
	if s.kazoo {
		return name
	}
	return leasesDir + name
}

// permits returns the leases among the children of the znode that has them. Whatever stands there
// counts, as it does for Curator and kazoo, but for void leases other than own; and kazoo's znode has had other uses, perhaps.
func (s semaphore) permits(children []string, own string) []string {
	return slices.DeleteFunc(slices.Clone(children), func(name string) bool {
		return void(name) && name != own || s.kazoo && (isLock(name) || name == placesName || name == leasesName)
	})
}

// kazooLease reports whether a child of a key's znode is a permit, or an Info.Grant that of a permit in kazoo's form.
func kazooLease(name string) bool {
	if _, ok := sequence.OfKazooLease(name); ok {
		return true
	}
	return len(name) == guidLen && guidIn(name) == name // as kazoo makes them
}

// isLease reports whether an Info.Grant is that of a permit.
func isLease(grant string) bool { return strings.HasPrefix(grant, leasesDir) || kazooLease(grant) }

// parseLease parses a lease. One without a number, which is kazoo's, counts as older than all
// others: when it was made is not known, and kazoo does not look whether it was too late.
func parseLease(name string) (entry, bool) {
	if name == "" {
		return entry{}, false
	}
	seq, ok := sequence.OfLease(name)
	if !ok {
		seq = unnumbered
	}
	return entry{name: name, seq: seq}, true
}

// use is what there is of a semaphore.
type use struct {
	data   []byte   // of the key's znode
	stat   *zk.Stat // of the same
	keys   []string // its children
	places []string
	leases []string
	next   int64 // the sequence number of the next lease
}

// limit returns how many permits there are; false if the data of the key's znode is no number.
func (u *use) limit() (int, bool) {
	n, err := strconv.Atoi(string(u.data))
	return n, err == nil && n > 0
}

// survey reads all there is of a semaphore, in one flight. The error matches zk.ErrNoNode if the
// key has no znode.
func (e *engine) survey(ctx context.Context, s semaphore) (use, error) {
	node, all, err := e.link.Survey(ctx, s.key, s.key, s.places, s.leases)
	for i, l := range all {
		if err == nil && (i == 0 || !errors.Is(l.Err, zk.ErrNoNode)) {
			err = zkconn.StepError("look at", s.key, l.Err)
		}
	}
	if err != nil {
		return use{}, err
	}
	leases := all[2]
	if leases.Err != nil {
		leases.Stat = &zk.Stat{}
	}
	return use{
		data: node.Data, stat: node.Stat, keys: all[0].Names, places: all[1].Names,
		leases: s.permits(leases.Names, ""), next: nextNumber(leases.Stat),
	}, nil
}

// isSemaphore is why a lock is refused on a key with a semaphore of limit permits; 0 if that is
// not known.
func (e *engine) isSemaphore(key string, limit int, s semaphore) error {
	if limit > 0 {
		return &driver.MismatchError{Key: key, Have: limit}
	}
	return &NamesError{Key: key, Node: s.leases, Names: e.opts.Names}
}

// holdersOf returns those of the children of the znode with the leases who have a permit, and how
// many permits there are; 0 if that is not known.
func (e *engine) holdersOf(ctx context.Context, s semaphore, children []string) (line []entry, limit int, err error) {
	node, err := e.link.Get(ctx, s.key)
	if err != nil {
		return nil, 0, err
	}
	limit, known := (&use{data: node.Data}).limit()
	if !known {
		limit = 0
	}
	for {
		line, _, err = e.orderBy(ctx, s.leases, s.permits(children, ""), "", parseLease)
		if known && err == nil && len(line) > limit {
			var ok bool
			if line, ok, err = e.inTime(ctx, s, line, limit); err == nil && !ok {
				if children, err = e.link.Children(ctx, s.leases); err == nil {
					continue
				}
			}
		}
		return once(s.mayBeLeases(line)), limit, err
	}
}

// describePermits describes a semaphore; not as held, if nobody has a permit of it.
func (e *engine) describePermits(ctx context.Context, key string, s semaphore) (driver.Info, error) {
	none := driver.Info{Key: key}
	for {
		var names [2][]string
		for i, path := range []string{s.leases, s.places} {
			var err error
			if names[i], err = e.link.Children(ctx, path); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return none, err
			}
		}
		line, limit, err := e.holdersOf(ctx, s, names[0])
		if errors.Is(err, zk.ErrNoNode) || err == nil && len(line) == 0 {
			return none, nil
		}
		if err != nil {
			return none, err
		}
		nodes, err := e.readAll(ctx, s.leases, line)
		if err != nil {
			return none, err
		}
		if len(nodes) == 0 {
			continue // they are the next ones' by now
		}
		_, lock, err := e.firstLock(ctx, s)
		if errors.Is(err, zk.ErrNoNode) {
			return none, nil // the key has gone by now
		}
		if err != nil {
			return none, err
		}
		info, ok := s.info(key, limit, line, nodes, lock)
		if !ok {
			return none, nil
		}
		queue, err := e.order(ctx, s.places, names[1], "")
		if err != nil {
			return none, err
		}
		nodes, err = e.readAll(ctx, s.places, queue)
		info.Queue = waitersOf(queue, nodes, true)
		return info, err
	}
}

// Where locks and permits meet, whoever came later is refused, and is there for a moment all the
// same. So only those who came before all of the other kind hold the key.

// firstLock returns the first lock of a key, and its czxid; no name and the greatest number if there
// is none. It lists the locks after the leases have been listed: a lock may come, and a lease after
// that.
func (e *engine) firstLock(ctx context.Context, s semaphore) (name string, czxid int64, err error) {
	children, err := e.link.Children(ctx, s.key)
	if err != nil {
		return "", 0, err
	}
	line, err := e.order(ctx, s.key, children, "")
	for _, x := range line {
		stat, err := e.link.Stat(ctx, s.key+"/"+x.name)
		switch {
		case err == nil:
			return x.name, stat.Czxid, nil
		case !errors.Is(err, zk.ErrNoNode):
			return "", 0, err
		}
	}
	return "", math.MaxInt64, err
}

// outranked reports whether a lock is refused because of somebody who had a permit of a semaphore, or
// waited for one, before. Who waits for a permit counts only if there was something for leases, too, before the
// lock: otherwise the lock may have been granted, since it knows a semaphore by that. See found.
func (e *engine) outranked(ctx context.Context, s semaphore, lock string) (bool, error) {
	stat, err := e.link.Stat(ctx, s.key+"/"+lock)
	if err != nil {
		return false, err
	}
	before, err := e.anyBefore(ctx, s.leases, s.mayBeLease, stat.Czxid)
	if before || err != nil || s.kazoo { // kazoo's leases are the sign themselves
		return before, err
	}
	leases, err := e.link.Stat(ctx, s.leases)
	if errors.Is(err, zk.ErrNoNode) || err == nil && leases.Czxid > stat.Czxid {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return e.anyBefore(ctx, s.places, isLock, stat.Czxid)
}

// anyBefore reports whether one of some children of a znode was made before something else. Those of keys do not count: see
// anyLease.
func (e *engine) anyBefore(ctx context.Context, path string, some func(child string) bool, czxid int64) (bool, error) {
	children, err := e.link.Children(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	var line []entry
	for _, name := range children {
		if some(name) && !void(name) {
			line = append(line, entry{name: name})
		}
	}
	var stats map[string]*zk.Stat
	if err == nil {
		stats, err = e.statAll(ctx, path, line)
	}
	for _, stat := range stats {
		if stat.Czxid < czxid && stat.EphemeralOwner != 0 {
			return true, err
		}
	}
	return false, err
}

// info describes those who have a permit, as far as they are among the nodes that were read, and
// were made before the first lock; false if none of them was. The znode of a key is no permit.
func (s semaphore) info(key string, limit int, line []entry, nodes map[string]zkconn.Znode, lock int64) (driver.Info, bool) {
	var all []driver.Holder
	for _, x := range line {
		if node, ok := nodes[x.name]; ok && node.Stat.Czxid < lock && node.Stat.EphemeralOwner != 0 {
			h := holderOf(x.name, node)
			h.Grant = s.grant(x.name)
			all = append(all, h)
		}
	}
	if len(all) == 0 {
		return driver.Info{}, false
	}
	slices.SortFunc(all, func(a, b driver.Holder) int { return cmp.Compare(a.Token, b.Token) })
	return driver.Together(key, limit, all), true
}
