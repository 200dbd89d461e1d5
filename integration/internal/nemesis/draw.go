package nemesis

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Shape describes the run for which a plan is made.
type Shape struct {
	Clients int           // slots of client processes
	Servers int           // servers that a fault may name
	Keys    int           // of locks
	Lease   time.Duration // the unit of all durations
	Length  time.Duration // of the run
	Deck    []Kind        // the kinds of faults, each once
}

// Tail is the last part of a run, without faults, in which everything under way can end.
func (s Shape) Tail() time.Duration { return min(3*s.Lease, s.Length/4) }

// Draw makes the plan of a seed.
//
// Kinds are dealt from shuffled decks, so that each occurs once per round: one deck for the servers, whose faults follow each
// other with time to recover in between, and one for all others, whose faults may overlap. With a lease of two seconds and
// the kinds of an ensemble, 75 seconds are one round of the first deck and three or four of the second.
func Draw(seed uint64, s Shape) []Fault {
	var servers, others []Kind
	for _, kind := range s.Deck {
		if kind.OfServers() {
			servers = append(servers, kind)
		} else {
			others = append(others, kind)
		}
	}
	// One source per deck: adding a kind to one deck does not change the other.
	plan := s.deal(rand.New(rand.NewPCG(seed, 1)), servers, 8*s.Lease, func(r *rand.Rand, f Fault) time.Duration {
		return f.For + between(r, s.Lease, 3*s.Lease/2)
	})
	plan = append(plan, s.deal(rand.New(rand.NewPCG(seed, 2)), others, 0, func(r *rand.Rand, _ Fault) time.Duration {
		return between(r, s.Lease/8, 5*s.Lease/4)
	})...)
	slices.SortStableFunc(plan, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	for i := range plan {
		plan[i].N = i + 1
	}
	return plan
}

// deal deals one deck repeatedly, until the calm tail. gap is the time between the starts of two faults. A round has a
// minimum length, so that a deck of one kind does not inject it all the time.
func (s Shape) deal(r *rand.Rand, deck []Kind, round time.Duration, gap func(*rand.Rand, Fault) time.Duration) []Fault {
	if len(deck) == 0 {
		return nil
	}
	end := s.Length - s.Tail()
	deck = slices.Clone(deck)
	var plan []Fault
	at := between(r, s.Lease/4, s.Lease/2)
	for {
		began := at
		r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		for _, kind := range deck {
			f := s.draw(r, kind)
			f.At = at
			if f.At+f.For > end {
				return plan
			}
			plan = append(plan, f)
			at += gap(r, f)
		}
		at = max(at, began+round)
	}
}

// draw draws everything of a fault but its time.
func (s Shape) draw(r *rand.Rand, kind Kind) Fault {
	f := Fault{
		Kind:   kind,
		For:    s.duration(r, kind),
		Client: r.IntN(s.Clients),
		Server: r.IntN(s.Servers),
		Key:    r.IntN(s.Keys),
		Pick:   r.Uint32(),
		// One in three goes backwards, and the others may be too short to matter.
		Jump: between(r, s.Lease/4, 5*s.Lease),
	}
	if r.IntN(3) == 0 {
		f.Jump = -f.Jump
	}
	return f
}

// duration depends on the kind: a server partition or a client pause that is shorter than the lease proves nothing; a cut
// longer than the lease is no more than a crash.
func (s Shape) duration(r *rand.Rand, kind Kind) time.Duration {
	switch kind {
	case ClientPaused:
		return between(r, 11*s.Lease/10, 2*s.Lease)
	case FollowerCutOff, LeaderCutOff, LeaderPaused, LinkTurned, PrimaryDeposed:
		return between(r, 13*s.Lease/10, 2*s.Lease)
	case RollingRestart, LimitsChanged:
		return 3 * s.Lease // it lasts as long as it needs
	}
	if r.IntN(8) == 0 {
		return between(r, s.Lease/50, 3*s.Lease/10)
	}
	return between(r, 3*s.Lease/10, 2*s.Lease)
}

// between is a duration of from up to to, in whole milliseconds so that a plan can be read.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return (from + time.Duration(r.Int64N(int64(to-from)))).Truncate(time.Millisecond)
}
