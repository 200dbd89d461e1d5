package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
)

// foreign adds a contender that is not of the library to the queue, and returns its path.
func (s *scene) foreign(t *testing.T) string {
	t.Helper()
	path, err := s.conn.CreateProtectedEphemeralSequential(s.parent+"/lock-", nil, zk.WorldACL(zk.PermAll))
	must(t, err)
	return path
}

// joins has the scene's client wait in the queue, in which its node becomes the n-th child of the parent. When this
// returns, it has read what it watches.
func (s *scene) joins(ctx context.Context, t *testing.T, n, reads int) <-chan outcome {
	t.Helper()
	s.proxy.ResetCounts()
	got := s.acquiring(ctx)
	holds(t, s.conn, s.parent, n)
	s.reads(t, reads)
	s.quiet(t)
	return got
}

// quiet waits until the client has had the replies to all that it has asked.
func (s *scene) quiet(t *testing.T) {
	t.Helper()
	eventually(t, "all is answered", func() bool {
		_, err := s.client.Conn().Sync("/")
		must(t, err)
		asked := s.proxy.CountKind(faultproxy.ToServer, faultproxy.KindRequest)
		return s.proxy.CountKind(faultproxy.ToClient, faultproxy.KindReply) >= asked // one may have been under way at a reset
	})
}

func (s *scene) lists() int { return s.proxy.Count(faultproxy.ToServer, faultproxy.OpGetChildren2) }

// Z10. When the node before its predecessor goes, a waiter lists the queue, unless those were the only two before it. Then
// its predecessor's deletion is the grant, without a further request.
func TestLookAhead(t *testing.T) {
	t.Parallel()
	for others, lists := range map[int]int{2: 0, 3: 1} {
		t.Run(fmt.Sprintf("%d before it", others), func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				s.prepare(t)
				var ahead []string
				for range others {
					ahead = append(ahead, s.foreign(t))
				}
				got := s.joins(limited(t), t, others+1, 3)
				s.proxy.ResetCounts()
				for _, path := range ahead[:others-1] {
					s.delete(t, path)
				}
				eventually(t, "the queue is listed", func() bool { return s.lists() == lists })
				s.quiet(t)
				silent(t, "grant", got)
				held, free := s.proxy.HoldRequest(faultproxy.AnyOp, s.parent) // the grant needs none
				defer free()
				s.delete(t, ahead[others-1])
				lock := granted(t, got)
				free()
				<-held // the look at its own node, later
				if n := s.lists(); n != lists {
					t.Errorf("the queue was listed %d times, want %d", n, lists)
				}
				release(t, lock)
				s.clean(t)
			})
		})
	}
}

// Z8, Z10. One of the two before it may leave another node in its place, as Curator's write lock does.
func TestLookAheadDowngrade(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.prepare(t)
		writer, err := s.conn.CreateProtectedEphemeralSequential(s.parent+"/__WRIT__", nil, zk.WorldACL(zk.PermAll))
		must(t, err)
		second := s.foreign(t)
		got := s.joins(limited(t), t, 3, 3)
		reader := strings.Replace(writer, "__WRIT__", "__READ__", 1)
		must(t, errOf(s.conn.Create(reader, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))))
		s.delete(t, writer)
		s.quiet(t)
		s.delete(t, second)
		s.quiet(t)
		silent(t, "grant", got)
		s.delete(t, reader)
		release(t, granted(t, got))
		s.clean(t)
	})
}

// Z10. Nodes vanish in any order; nobody is granted the lock while a node before its own is there.
func TestLookAheadOutOfOrder(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1}, {1, 0}, {2, 1, 0}, {1, 2, 0}, {1, 0, 2}, {2, 0, 1}, {0, 2, 1}, {3, 2, 1, 0}, {3, 1, 0, 2}, {2, 3, 0, 1}, {1, 3, 2, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				s.prepare(t)
				ahead := make([]string, len(order))
				for i := range ahead {
					ahead[i] = s.foreign(t)
				}
				got := s.joins(limited(t), t, len(order)+1, 3)
				for i, which := range order {
					s.quiet(t)
					silent(t, fmt.Sprintf("grant after %d deletions", i), got)
					s.delete(t, ahead[which])
				}
				release(t, granted(t, got))
				s.clean(t)
			})
		})
	}
}

// Z10. What is written to a node is no end of it.
func TestLookAheadWritten(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.prepare(t)
		first, second, third := s.foreign(t), s.foreign(t), s.foreign(t)
		got := s.joins(limited(t), t, 4, 3)
		for range 2 {
			_, err := s.conn.Set(second, []byte("a note"), -1)
			must(t, err)
			s.quiet(t)
		}
		s.delete(t, third)
		s.quiet(t)
		s.delete(t, first)
		s.quiet(t)
		silent(t, "grant", got)
		s.delete(t, second)
		release(t, granted(t, got))
		s.clean(t)
	})
}
