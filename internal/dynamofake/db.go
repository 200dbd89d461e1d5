package dynamofake

import (
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A DB is the service: its tables and its behaviour. Set the fields while no call is
// under way.
type DB struct {
	// CreateDelay is how long a new table stays in state CREATING.
	CreateDelay time.Duration
	// TellDelay is how long DescribeTable does not find a new table.
	TellDelay time.Duration
	// Latency is the duration of each call: half of it to the service, half back.
	Latency time.Duration
	// Lag is how far eventually consistent reads lag behind.
	Lag time.Duration
	// ExpireDelay is how long an item stays after its time to live; negative is forever.
	ExpireDelay time.Duration

	// TransactTime is how long other writes of its items conflict with a transaction.
	TransactTime time.Duration

	mu     sync.Mutex // never held while waiting
	tables map[string]*table
	busy   map[string]time.Time // until when, by table and key
}

// New returns a service without tables.
func New() *DB {
	return &DB{tables: make(map[string]*table), busy: make(map[string]time.Time)}
}

// table returns a table that data can be read from and written to.
func (db *DB) table(name string) (*table, error) {
	t := db.tables[name]
	if t == nil || t.status(db) != types.TableStatusActive {
		return nil, notFound(name)
	}
	t.expire(db)
	return t, nil
}

// described returns a table in any state, unless it is too new.
func (db *DB) described(name *string) (*table, error) {
	if err := checkTableName(name); err != nil {
		return nil, err
	}
	t := db.tables[*name]
	if t == nil || time.Since(t.created) < db.TellDelay {
		return nil, notFound(*name)
	}
	return t, nil
}

// Item returns the current version of an item, nil if there is none. It panics if the
// table does not exist or the key does not fit it.
func (db *DB) Item(table string, key map[string]types.AttributeValue) map[string]types.AttributeValue {
	db.mu.Lock()
	defer db.mu.Unlock()
	t, k := db.direct(table, key, (*schema).checkKey)
	return clone(t.current(k))
}

// Items returns the current version of all items of a table, in the order of Scan.
func (db *DB) Items(table string) []map[string]types.AttributeValue {
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.table(table)
	if err != nil {
		panic(fmt.Sprintf("dynamofake: %v", err))
	}
	var items []item
	for _, e := range t.entries(time.Time{}) {
		items = append(items, clone(e.item))
	}
	return items
}

// SetItem writes an item directly, without a client or its faults. It panics as Item
// does.
func (db *DB) SetItem(table string, it map[string]types.AttributeValue) {
	db.mu.Lock()
	defer db.mu.Unlock()
	c, err := canonicalItem(it)
	if err != nil {
		panic(fmt.Sprintf("dynamofake: %v", err))
	}
	t, k := db.direct(table, c, (*schema).checkItem)
	t.set(k, c, db.Lag)
}

// RemoveItem removes an item directly, without a client or its faults. It panics as Item
// does.
func (db *DB) RemoveItem(table string, key map[string]types.AttributeValue) {
	db.mu.Lock()
	defer db.mu.Unlock()
	t, k := db.direct(table, key, (*schema).checkKey)
	t.set(k, nil, db.Lag)
}

func (db *DB) direct(name string, it item, check func(*schema, item) error) (*table, string) {
	t, err := db.table(name)
	if err != nil {
		panic(fmt.Sprintf("dynamofake: %v", err))
	}
	c, err := canonicalItem(it)
	if err == nil {
		err = check(&t.schema, c)
	}
	if err != nil {
		panic(fmt.Sprintf("dynamofake: %v", err))
	}
	return t, t.encode(c)
}
