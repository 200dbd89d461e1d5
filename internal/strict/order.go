package strict

// Rank is one of the types below: the place of a mutex in the order of all. A goroutine that has locked one may lock later ones,
// and none before it or of its own rank: no goroutine has two locks locked, say. Functions of the user are called with none locked.
type Rank interface{ rank() int }

// The order of the mutexes, by the types whose they are.
type (
	Store           struct{} // memlock
	Client          struct{} // holdfast
	Election        struct{} // holdfast
	Lock            struct{} // holdfast
	Observation     struct{} // holdfast
	OwnNode         struct{} // zklock
	Orphans         struct{} // zklock
	Doubts          struct{} // zklock
	Heartbeat       struct{} // zklock
	ZooKeeperEngine struct{} // zklock
	Watches         struct{} // zkconn
	Batches         struct{} // zkconn
	Wire            struct{} // zkconn
	Link            struct{} // zkconn
	Heartbeats      struct{} // recordlock
	Records         struct{} // recordlock: the engine
	TimeToLive      struct{} // dynamolock
	Lease           struct{} // driver
	Tasks           struct{} // driver/task
	Feed            struct{} // holdfast: events
	Pump            struct{} // holdfast: a queue
)

func (Store) rank() int           { return 0 }
func (Client) rank() int          { return 1 }
func (Election) rank() int        { return 2 }
func (Lock) rank() int            { return 4 }
func (Observation) rank() int     { return 5 }
func (OwnNode) rank() int         { return 6 }
func (Orphans) rank() int         { return 7 }
func (Doubts) rank() int          { return 8 }
func (Heartbeat) rank() int       { return 9 }
func (ZooKeeperEngine) rank() int { return 10 }
func (Watches) rank() int         { return 12 }
func (Batches) rank() int         { return 13 }
func (Wire) rank() int            { return 15 }
func (Link) rank() int            { return 16 }
func (Heartbeats) rank() int      { return 17 }
func (Records) rank() int         { return 18 }
func (TimeToLive) rank() int      { return 19 }
func (Lease) rank() int           { return 20 }
func (Tasks) rank() int           { return 21 }
func (Feed) rank() int            { return 22 }
func (Pump) rank() int            { return 23 }
