package holdfast

// ClockLook is how often a client with locks compares its clocks.
const ClockLook = clockLook

// Contexts is how many contexts a lock has to end.
func Contexts(k *Lock) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.cancels)
}

// ReadWhileClosed is what a reader gets of n events of a queue that is closed meanwhile.
func ReadWhileClosed(n int) []uint64 {
	q := newQueue()
	for i := range n {
		q.push(Event{Seq: uint64(i)})
	}
	read, closed := make(chan []uint64), make(chan struct{})
	go func() {
		var got []uint64
		for {
			select {
			case event := <-q.out:
				got = append(got, event.Seq)
			case <-closed:
				read <- got
				return
			}
		}
	}()
	q.close()
	close(closed)
	return <-read
}
