package dynamolock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// LastHeard is the last heartbeat by the holder's clock, alone or shared; a holder that is silent for longer than its lease seems dead.
func TestLastHeard(t *testing.T) {
	for kind, opts := range map[string][]holdfast.Option{"alone": nil, "shared": {holdfast.WithShared()}} {
		for name, ahead := range map[string]time.Duration{"right": 0, "slow": -lease, "fast": lease} {
			t.Run(kind+", "+name+" clock", func(t *testing.T) {
				bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
					a := h.client(t)
					a.clock.Jump(ahead)
					a.hold(t, "k", opts...)
					heard := func() time.Time {
						_, err := h.client(t).TryAcquire(within(t, poll), "k")
						var held *holdfast.HeldError
						if !errors.As(err, &held) {
							t.Fatal(err)
						}
						for info := range held.Holder.Each() {
							if info.LastHeard.IsZero() || !info.LastHeard.Equal(held.LastHeard) {
								t.Errorf("Holder.LastHeard %v, LastHeard %v", info.LastHeard, held.LastHeard)
							}
							if past := time.Since(info.LastHeard); info.SeemsDead(time.Now()) != (past > lease) {
								t.Errorf("SeemsDead is %v after %v", past <= lease, past)
							}
						}
						return held.LastHeard
					}
					time.Sleep(3 * lease)
					if silent := time.Since(heard()) + ahead; silent < 0 || silent > a.Options().Heartbeat+poll {
						t.Errorf("heard %v ago", silent)
					}
					a.dies(t)
					last := heard()
					time.Sleep(3 * lease / 2)
					if now := heard(); now != last {
						t.Errorf("heard at %v after its death, at %v before", now, last)
					}
				})
			})
		}
	}
}

// In the modes that fail closed nobody renews a lease: a holder that is silent seems neither dead nor alive.
func TestLastHeardFailClosed(t *testing.T) {
	inEach(t, closedModes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		a.hold(t, "k")
		time.Sleep(3 * lease)
		if info, err := b.Inspect(t.Context(), "k"); err != nil || !info.Held || !info.LastHeard.IsZero() || info.SeemsDead(time.Now()) {
			t.Errorf("%+v, %v", info, err)
		}
	})
}
