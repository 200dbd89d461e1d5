package main

// sabotage makes the clients of a run faulty, to test that the checker catches them.
type sabotage string

const (
	honest         sabotage = ""
	ignoresLoss    sabotage = "ignores loss"          // it claims to hold a lock until it releases it, whatever Err says
	constantTokens sabotage = "constant tokens"       // all grants of a process have the same token
	leadsOn        sabotage = "leads on"              // its lead takes no notice of the end of its term
	givesBack      sabotage = "gives back"            // it gives the key back while lead runs
	hidesSharing   sabotage = "hides sharing"         // half of its readers say that they have the key alone
	keepsPermit    sabotage = "keeps a permit"        // it says once that it has given a permit back, and has not
	oneTooMany     sabotage = "one too many"          // it asks for one permit more than it says that there are
	forgetsSharers sabotage = "forgets sharers"       // of those who share a key, its observers do not tell of the oldest
	deafObserver   sabotage = "deaf observer"         // its observers do not hear that nobody holds a key
	tellsWaiters   sabotage = "tells of waiters"      // its observers take whoever waits for the holder
	blindToTTL     sabotage = "blind to Time to Live" // on DynamoDB: it does not read the Time to Live attribute
	// On ZooKeeper, it takes any reply of a server as proof that its session is alive. It verifies nothing while it holds a
	// lock: behind a write that a server without a quorum cannot carry out, even pings get no reply, which shows the loss.
	noHeartbeats sabotage = "no heartbeats"
)
