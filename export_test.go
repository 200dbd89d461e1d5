package holdfast

// ClockLook is how often a client with locks compares its clocks.
const ClockLook = clockLook

// Contexts is how many contexts a lock has to end.
func Contexts(k *Lock) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.cancels)
}
