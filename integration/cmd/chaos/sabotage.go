package main

// sabotage is a lie that a client process tells, so that tests can see the checks find it.
type sabotage string

const (
	honest         sabotage = ""
	ignoresLoss    sabotage = "ignores loss"    // it says that it holds a lock until it releases it, whatever Err says
	constantTokens sabotage = "constant tokens" // all grants of a process have the same token
)
