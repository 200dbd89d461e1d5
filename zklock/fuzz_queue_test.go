package zklock

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/sequence"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// birth is a child of a lock node in the order of creation.
type birth struct {
	name  string
	turn  float64 // its place, apart from earlier contenders
	alive bool    // it was not deleted between the list and the read
}

// take takes the first byte off a script; 0 if there is none.
func take(script *[]byte) byte {
	if len(*script) == 0 {
		return 0
	}
	first := (*script)[0]
	*script = (*script)[1:]
	return first
}

// history makes the children of a lock node as a server would: sequence numbers
// rise, the counter sticks at its end, beyond it some are negative, peers share
// one on purpose, and there are strangers in between.
func history(script []byte) (all []birth, names []string) {
	forms := []string{
		"_c_%032x-lock-", "_c_%032x-latch-", "_c_%032x-__READ__", "_c_%032x-__WRIT__",
		"%032x__lock__", "%032x__rlock__", "%032x-read-", "%032x-write-",
	}
	const most = 24
	seq := int64(0)
	for id := 0; len(script) > 0 && id < most; id++ {
		step := take(&script)
		prefix := fmt.Sprintf(forms[step&7], id)
		switch step >> 3 & 7 {
		case 0: // as a re-entrant reader of Curator's
		case 1, 2, 3:
			seq++
		case 4:
			seq += 1 + int64(take(&script))<<16
		case 5:
			seq = max(seq, sequence.Last-int64(take(&script)&3))
		case 6: // a stranger
			names = append(names, fmt.Sprintf("%032x-node-%010d", id, seq))
			continue
		}
		seq = min(seq, sequence.Last)
		shown := seq
		if seq == sequence.Last && step&0x40 != 0 {
			shown = math.MinInt32 + int64(id) // creations overlapped in the leader
		}
		name := prefix + fmt.Sprintf("%010d", shown)
		turn := float64(seq)
		if readers := []int{2, 5, 6}; slices.Contains(readers, int(step&7)) && seq < sequence.Last {
			turn += 0.5
		}
		all = append(all, birth{name: name, turn: turn, alive: step&0x80 == 0})
		names = append(names, name)
	}
	return all, names
}

// FuzzOrder tests the order of a queue (hazards Z6 and Z19): with any counter, it is
// the order of creation, except for readers in the place of a writer. It is the same for
// every client and every order of the server's list. No earlier contender is left out,
// and no stranger is let in.
func FuzzOrder(f *testing.F) {
	f.Add([]byte{0x08, 0x09, 0x0c, 0x30, 0x20, 1}, byte(1), uint64(1))
	f.Add([]byte{0x08, 0x02, 0x02, 0x08}, byte(2), uint64(2))             // shared sequences
	f.Add([]byte{0x08, 0x28, 2, 0x08, 0x08, 0x08}, byte(3), uint64(3))    // the counter sticks
	f.Add([]byte{0x08, 0x28, 0}, byte(1), uint64(4))                      // it has just got there
	f.Add([]byte{0x08, 0x28, 0, 0x48, 0x08, 0x4c}, byte(2), uint64(4))    // negative ones, of which own is one
	f.Add([]byte{0x88, 0x08, 0x80, 0x08, 0xa8, 0}, byte(4), uint64(5))    // gone when they are read
	f.Add([]byte{0x28, 1, 0x28, 0, 0x08, 0x30, 0}, byte(9), uint64(0x60)) // at the end from the start
	f.Fuzz(func(t *testing.T, script []byte, own byte, seed uint64) {
		all, names := history(script)
		var want []string
		alive, nodes := make(map[string]bool), make(map[string]zkconn.Znode)
		for i, node := range all {
			nodes[node.name] = zkconn.Znode{Stat: &zk.Stat{Czxid: int64(i + 1)}}
		}
		slices.SortStableFunc(all, func(x, y birth) int { return cmp.Compare(x.turn, y.turn) })
		for _, node := range all {
			if alive[node.name] = node.alive; node.alive {
				want = append(want, node.name)
			} else {
				delete(nodes, node.name)
			}
		}
		shuffle := rand.New(rand.NewPCG(seed, 0))
		shuffle.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })

		me := ""
		if i := int(own); i < len(all) {
			me = all[i].name
		}
		for _, me := range []string{"", me} {
			line, err := sorted(names, me, func([]entry) (map[string]zkconn.Znode, error) { return nodes, nil })
			if err != nil {
				t.Fatal(err)
			}
			seen := make(map[string]bool)
			var got []string
			for _, c := range line {
				if _, known := alive[c.name]; !known || seen[c.name] {
					t.Fatalf("order of %q, own %q: %q is a stranger, or in it twice", names, me, c.name)
				}
				seen[c.name] = true
				if alive[c.name] {
					got = append(got, c.name)
				}
			}
			before := want
			if i := slices.Index(want, me); me != "" && alive[me] {
				before = want[:i+1]
			}
			if me != "" && !alive[me] {
				continue // the predecessor in a queue without me does not matter
			}
			if len(got) < len(before) || !slices.Equal(got[:len(before)], before) {
				t.Fatalf("order of %q, own %q:\n%q, want first\n%q", names, me, got, before)
			}
		}
	})
}
