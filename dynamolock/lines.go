package dynamolock

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// lines are what a client knows of keys: who of its contenders waits for them, and what it has last seen of their items. It
// remembers a key for which nobody waits for programs that only try: a later try can then see that the holder has not renewed for
// a whole lease.
type lines struct {
	now  func() driver.Instant
	id   string        // of the client, with which its guids begin
	poll time.Duration // [Options.Poll]
	pace time.Duration // from one look at a key to the next

	mu strict.Mutex[strict.Lines]
	of map[string]*line
}

func newLines(e *engine) *lines {
	return &lines{now: e.host.Now, id: e.id, poll: e.opts.Poll, pace: e.times.look, of: make(map[string]*line)}
}

// maxLines is how many keys a client remembers for which none of its contenders waits,
// some 20 MB at most.
var maxLines = 32 * 1024

// forgetAfter is how long a client remembers an unused key when there is no room for
// others.
const forgetAfter = time.Hour

// lineLocked returns the line of a key, or nil if there is no room for a line without
// waiters. A remembered key is not evicted for a new one: keys that are tried in turn
// would evict each other, and none would be watched for its lease. A key makes room when
// it is taken or found free.
func (x *lines) lineLocked(key string, now driver.Instant, waits bool) *line {
	l := x.of[key]
	if l == nil {
		if len(x.of) >= maxLines && !x.makeRoomLocked(now) && !waits {
			return nil
		}
		l = &line{}
		x.of[key] = l
	}
	l.used = now
	return l
}

// makeRoomLocked forgets a key that was not used for long, if it finds one among a few.
func (x *lines) makeRoomLocked(now driver.Instant) bool {
	few := 16
	for key, l := range x.of { // from a random one on
		if l.waiters == 0 && now.Sub(l.used) > forgetAfter {
			delete(x.of, key)
			return true
		}
		if few--; few == 0 {
			break
		}
	}
	return false
}

// tidyLocked forgets a key for which nobody waits and that is free, or that is to be
// forgotten anyway. Of another it forgets the data, of which there may be much.
func (x *lines) tidyLocked(key string, l *line, anyway bool) {
	i := l.seen.item
	switch {
	case l.waiters > 0:
	case anyway || i == nil || !i.held():
		delete(x.of, key)
	case i.data != nil || i.sharing != nil:
		l.seen.item = i.withoutData()
	}
}

// observed returns what was seen of a key.
func (x *lines) observed(key string) observation {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.of[key]; l != nil {
		return l.seen
	}
	return observation{}
}

// record notes an item that was read just now, and returns the observation.
func (x *lines) record(key string, i *item) observation {
	now := x.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.recordLocked(key, i, now)
}

// polled is record for what an old replica may have shown: an earlier state than was seen is no news. Only here, since a read that is
// consistent is right in any case, also where a table was restored. It returns false, and notes nothing, if the key was seen to be held
// under a greater token: only such a read tells what was there before that grant from what is there since the item was deleted.
func (x *lines) polled(key string, i *item) bool {
	now := x.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.of[key]; l != nil && l.seen.item != nil {
		switch seen := l.seen.item; {
		case seen.held() && i.token < seen.token:
			return false
		case i.older(seen):
			i = seen
		}
	}
	x.recordLocked(key, i, now)
	return true
}

func (x *lines) recordLocked(key string, i *item, now driver.Instant) observation {
	l := x.lineLocked(key, now, false)
	if l == nil {
		var first observation
		first.update(i, now)
		return first
	}
	l.seen.update(i, now)
	l.heard, l.err = now, nil
	l.callHolders(x.id)
	seen := l.seen
	x.tidyLocked(key, l, false)
	return seen
}

// took records the item that this client wrote, for those who are next in line.
func (x *lines) took(key string, own *item) {
	now := x.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.of[key]; l != nil {
		l.seen.update(own, now)
		l.heard, l.err, l.deniedSince = now, nil, driver.Instant{}
		x.tidyLocked(key, l, own.sharing == nil)
	}
}

// tried is for the end of a try. What it has looked at is not remembered if there is no room, or nothing was learned.
func (x *lines) tried(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.of[key]; l != nil {
		x.tidyLocked(key, l, len(x.of) > maxLines)
	}
}

// failed records that a request failed.
func (x *lines) failed(key string, err error) {
	now := x.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.of[key]; l != nil {
		l.heard, l.err = now, err
	}
}

// heard returns what was last heard of a key, an item or an error, if that was after a moment or just before it. What was heard
// long before is no answer.
func (x *lines) heard(key string, since driver.Instant) (*item, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of[key]
	if l == nil || since.Sub(l.heard) > gapOf(x.poll) {
		return nil, nil
	}
	return l.seen.item, l.err
}
