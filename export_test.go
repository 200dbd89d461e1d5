package holdfast

// Locks is how many locks a lease has to end.
func Locks(l *Lease) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.term.locks)
}

// Contexts is how many contexts a lock has to end.
func Contexts(k *Lock) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.cancels)
}
