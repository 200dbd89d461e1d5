package queue_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/queue"
)

func TestChan_CloseWhileRead_ValuesHaveNoGap(t *testing.T) {
	for range 2000 {
		q := queue.NewChan[int]()
		for i := range 8 {
			q.Push(i)
		}
		closed, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			for want := 0; ; want++ {
				select {
				case v := <-q.Out:
					if v != want {
						t.Errorf("read %d, want %d", v, want)
					}
				case <-closed:
					return
				}
			}
		}()
		q.Close()
		close(closed)
		<-over
	}
}
