package zklock_test

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// listing returns which znode a request lists, and whether it watches that; "" for any other request.
func listing(frame []byte) (path string, watches bool) {
	const at = 16
	if len(frame) < at || binary.BigEndian.Uint32(frame[8:]) != opGetChildren2 {
		return "", false
	}
	end := at + int(binary.BigEndian.Uint32(frame[at-4:]))
	return string(frame[at:end]), frame[end] != 0
}

// Z69. What the leases are in is removed, and made again, between two looks of an observer: it hears of the permits that are taken there.
func TestLeasesComeBackAsAnObserverLooks(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		observer, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		acquire(t, other, "another") // makes the root
		key := virtualRoot + "/k"
		createNode(t, other, "k", "1", 0)
		createNode(t, other, "k/leases", "", 0)
		seen := 0
		observer.sends(func(frame []byte) {
			switch path, watches := listing(frame); {
			case path == key+"/leases" && watches && seen == 0:
				seen++
				if err := other.Conn().Delete(key+"/leases", -1); err != nil {
					t.Error(err)
				}
			case path == key && watches && seen == 1:
				seen++
				createNode(t, other, "k/leases", "", 0)
			}
		})
		told := observed(t, observer, "k")
		time.Sleep(time.Second)
		if got := told(); seen != 2 || !slices.Equal(got, []holdfast.Token{0}) {
			t.Fatalf("told %d, after %d steps", got, seen)
		}
		lock, err := other.Acquire(t.Context(), "k", holdfast.WithLimit(1))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(virtualSession)
		if got := told(); !slices.Equal(got, []holdfast.Token{0, lock.Token()}) {
			t.Errorf("told %d, and %d has a permit", got, lock.Token())
		}
	})
}
