package dynamofake

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type table struct {
	schema
	description types.TableDescription
	created     time.Time
	ttl         string // the attribute, empty while disabled
	records     map[string]*record
}

// A record is one key's versions in the order of time, so that reads can lag behind.
type record struct{ versions []version }

// A version with no item is a deletion.
type version struct {
	since time.Time
	item  item
}

func (t *table) status(db *DB) types.TableStatus {
	if time.Since(t.created) < db.CreateDelay {
		return types.TableStatusCreating
	}
	return types.TableStatusActive
}

// tooOld is the age at which a time to live counts as a mistake.
const tooOld = 5 * 365 * 24 * time.Hour

// expire deletes items past their time to live, except by years. It runs before each
// access, so that no goroutine has to wait.
func (t *table) expire(db *DB) {
	if t.ttl == "" || db.ExpireDelay < 0 {
		return
	}
	now := time.Now()
	for key := range t.records {
		n, is := t.current(key)[t.ttl].(*types.AttributeValueMemberN)
		if !is {
			continue
		}
		seconds, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil {
			continue
		}
		if over := now.Sub(time.Unix(seconds, 0)); over > db.ExpireDelay && over < tooOld {
			t.set(key, nil, db.Lag)
		}
	}
}

// current returns the current version, which must not be changed.
func (t *table) current(key string) item { return t.at(key, time.Time{}) }

// at returns the version at a moment; the zero time is now.
func (t *table) at(key string, when time.Time) item {
	if r := t.records[key]; r != nil {
		return r.at(when)
	}
	return nil
}

func (r *record) at(when time.Time) item {
	for _, v := range slices.Backward(r.versions) {
		if when.IsZero() || !v.since.After(when) {
			return v.item
		}
	}
	return nil
}

// set makes it the current version; nil deletes. It drops versions that no read can see.
func (t *table) set(key string, it item, lag time.Duration) {
	now := time.Now()
	r := t.records[key]
	if r == nil {
		r = new(record)
		t.records[key] = r
	}
	r.versions = append(r.versions, version{since: now, item: it})
	horizon := now.Add(-lag)
	for len(r.versions) > 1 && !r.versions[1].since.After(horizon) {
		r.versions = slices.Delete(r.versions, 0, 1)
	}
	if len(r.versions) == 1 && it == nil {
		delete(t.records, key)
	}
}

// An entry is an item at its place in the order of a scan: by the hash of its
// partition key, within that by the sort key.
type entry struct {
	hash      uint64
	partition string
	sort      types.AttributeValue // nil if the table has no sort key
	item      item
}

func (t *table) entryOf(it item) entry {
	partition := keyString(it[t.keys[0].name])
	h := fnv.New64a()
	h.Write([]byte(partition))
	e := entry{hash: h.Sum64(), partition: partition, item: it}
	if len(t.keys) == 2 {
		e.sort = it[t.keys[1].name]
	}
	return e
}

func (e entry) compare(other entry) int {
	if c := cmp.Or(cmp.Compare(e.hash, other.hash), cmp.Compare(e.partition, other.partition)); c != 0 {
		return c
	}
	c, _ := order(e.sort, other.sort)
	return c
}

// entries returns the items of a moment, in the order of a scan.
func (t *table) entries(when time.Time) []entry {
	var entries []entry
	for _, r := range t.records {
		if it := r.at(when); it != nil {
			entries = append(entries, t.entryOf(it))
		}
	}
	slices.SortFunc(entries, entry.compare)
	return entries
}

// horizon returns the moment that a read sees: the zero time is the present.
func (db *DB) horizon(consistent *bool) time.Time {
	if isTrue(consistent) || db.Lag == 0 {
		return time.Time{}
	}
	return time.Now().Add(-db.Lag)
}
