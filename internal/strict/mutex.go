//go:build !mutexorder

package strict

import "sync"

// A Mutex is a [sync.Mutex] with a rank. With the build tag mutexorder, to lock one panics while the same goroutine has another that
// does not come before it: to find out which goroutine that is takes too long for other builds.
type Mutex[R Rank] struct{ sync.Mutex }
