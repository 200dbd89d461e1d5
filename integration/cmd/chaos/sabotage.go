package main

// sabotage is what is wrong with the clients of a run on purpose, so that tests can see it found.
type sabotage string

const (
	honest         sabotage = ""
	ignoresLoss    sabotage = "ignores loss"          // it says that it holds a lock until it releases it, whatever Err says
	constantTokens sabotage = "constant tokens"       // all grants of a process have the same token
	blindToTTL     sabotage = "blind to Time to Live" // on DynamoDB: it does not look by which attribute items expire
	noHeartbeats   sabotage = "no heartbeats"         // on ZooKeeper: it takes any answer of a server for a proof that its session lives
)
