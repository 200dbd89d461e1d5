package zklock

import "sync"

// routines owns the goroutines that wait for go-zookeeper, or tell what it has told.
// All of them end by themselves when it has ended, which answers every request, so
// that whoever closes the client can wait for them.
type routines struct {
	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
}

// run runs f on a goroutine; not at all once stop has been called, when nobody waits
// for what f would find out.
func (r *routines) run(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.running.Go(f)
	}
}

// stop returns when all have ended.
func (r *routines) stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.running.Wait()
}
