package nemesis

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Shape is what a plan has to fit.
type Shape struct {
	Clients int           // slots of client processes
	Servers int           // servers that a fault may name
	Keys    int           // of locks
	Lease   time.Duration // the measure of all durations
	Length  time.Duration // of the run
	Deck    []Kind        // what may happen; each kind once
}

// Tail is the last part of a run, which has no faults: what has begun has time to end.
func (s Shape) Tail() time.Duration { return min(3*s.Lease, s.Length/4) }

// Draw makes the plan of a seed.
//
// Kinds are dealt from shuffled decks, so that each has its turn once in a round: one deck for the servers, whose faults follow
// each other with time to recover in between, and one for all else, whose faults overlap as they come. With a lease of two
// seconds and the kinds of an ensemble, 75 seconds are one round of the first deck and three or four of the second.
func Draw(seed uint64, s Shape) []Fault {
	if s.Clients < 1 || s.Servers < 1 || s.Keys < 1 || s.Lease <= 0 {
		return nil
	}
	var servers, others []Kind
	for _, kind := range s.Deck {
		if kind.OfServers() {
			servers = append(servers, kind)
		} else {
			others = append(others, kind)
		}
	}
	// One source for each deck: a kind that is added to one does not change what comes of the other.
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

// deal deals one deck over and over, until the calm tail. gap is the time from the beginning of a fault to that of the next, and
// a round takes no less than a certain time: a server that knows one fault only is not to have it all the time.
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
		// One in three goes back, and the others may be too short to matter.
		Jump: between(r, s.Lease/4, 5*s.Lease),
	}
	if r.IntN(3) == 0 {
		f.Jump = -f.Jump
	}
	return f
}

// duration is by what a kind of fault is worth: a partition of servers, or the pause of a client, that ends before its lease
// proves nothing; a cut that lasts for as long as that is no more than a death.
func (s Shape) duration(r *rand.Rand, kind Kind) time.Duration {
	switch kind {
	case ClientPaused:
		return between(r, 11*s.Lease/10, 2*s.Lease)
	case FollowerCutOff, LeaderCutOff, LeaderPaused, LinkTurned, MemberReplaced:
		return between(r, 13*s.Lease/10, 2*s.Lease)
	case RollingRestart, LimitsChanged:
		return 3 * s.Lease // it takes what it takes
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
