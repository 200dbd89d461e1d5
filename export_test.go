package holdfast

import "github.com/holdfast-go/holdfast/internal/queue"

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
	q := queue.NewChan[Event]()
	for i := range n {
		q.Push(Event{Seq: uint64(i)})
	}
	read, closed := make(chan []uint64), make(chan struct{})
	go func() {
		var got []uint64
		for {
			select {
			case event := <-q.Out:
				got = append(got, event.Seq)
			case <-closed:
				read <- got
				return
			}
		}
	}()
	q.Close()
	close(closed)
	return <-read
}
