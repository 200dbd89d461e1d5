package main

// sabotage makes the clients of a run faulty, to test that the checker catches them.
type sabotage string

const (
	honest         sabotage = ""
	ignoresLoss    sabotage = "ignores loss"          // it claims to hold a lock until it releases it, whatever Err says
	constantTokens sabotage = "constant tokens"       // all grants of a process have the same token
	blindToTTL     sabotage = "blind to Time to Live" // on DynamoDB: it does not read the Time to Live attribute
	noHeartbeats   sabotage = "no heartbeats"         // on ZooKeeper: it takes any reply of a server as proof that its session is alive
)
