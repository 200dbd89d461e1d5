package dynamolock_test

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// A grant that the caller may reclaim, and whose item no write can take, is an error; it is not written to again and again.
func TestReclaimOfWhatCannotBeTaken(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		h.set("k", npm("4611686018427387904", "3600000", "g")) // the greatest token: there is no next one
		a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault {
			if a.requests() > 50 {
				return dynamofake.Fail(errors.New("too many requests"))
			}
			return dynamofake.Fault{}
		})
		if _, err := a.Acquire(within(t, lease), "k", holdfast.WithOwner("node"), holdfast.WithReclaim()); !errors.Is(err, dynamolock.ErrItem) {
			t.Error(err)
		}
	})
}
