package driver

import "time"

// Info describes a key, as holdfast.Info does, where each field is documented.
type Info struct {
	Key      string
	Held     bool
	Owner    string
	Token    uint64
	Since    time.Time
	QueuedAt time.Time
	Data     []byte
	Lease    time.Duration
	Queue    []Waiter
	Grant    string // names this very grant, for Break
}

// A Waiter is one of those who wait for a key.
type Waiter struct {
	Owner string
	Since time.Time
	Data  []byte
}
