package integration_test

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/zklock"
)

// semaphore is one that has been waited for, so that all its znodes are there.
type semaphore struct {
	*scene
	peer   *zklock.Client
	limit  holdfast.Option
	n      int
	leases string
	places string
}

// playSemaphore runs a test on one.
func playSemaphore(t *testing.T, names zklock.Names, n int, test func(t *testing.T, p *semaphore)) {
	t.Helper()
	play(t, &zklock.Options{SessionTimeout: longest, Names: names}, func(t *testing.T, s *scene) { test(t, newSemaphore(t, s, names, n)) })
}

// newSemaphore makes one.
func newSemaphore(t *testing.T, s *scene, names zklock.Names, n int) *semaphore {
	t.Helper()
	p := &semaphore{scene: s, limit: holdfast.WithLimit(n), n: n}
	p.peer = s.dial(t, &zklock.Options{Names: names})
	p.leases, p.places = p.parent+"/leases", p.parent+"/locks"
	if names == zklock.KazooNames {
		p.leases, p.places = p.parent, p.parent+"-__lock__"
	}
	all := p.all(t)
	got := p.acquiring(limited(t), p.limit)
	p.waits(t, 1)
	release(t, all[0])
	all[0] = granted(t, got)
	p.returns(t, all)
	p.proxy.ResetCounts()
	return p
}

// all takes all permits.
func (p *semaphore) all(t *testing.T) (all []*holdfast.Lock) {
	t.Helper()
	for range p.n {
		all = append(all, take(t, p.peer, p.key, p.limit))
	}
	if _, err := p.peer.TryAcquire(limited(t), p.key, p.limit); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("one more permit than there are: %v", err)
	}
	return all
}

// waits waits until so many stand in the queue.
func (p *semaphore) waits(t *testing.T, n int) string {
	t.Helper()
	names := inOrder(holds(t, p.conn, p.places, n))
	return p.places + "/" + names[n-1]
}

// returns releases permits. Nothing stays behind.
func (p *semaphore) returns(t *testing.T, all []*holdfast.Lock) {
	t.Helper()
	for _, lock := range all {
		release(t, lock)
	}
	p.nothing(t)
}

func (p *semaphore) nothing(t *testing.T) {
	t.Helper()
	noResidue(t, p.conn, p.places)
	eventually(t, "there is no lease", func() bool {
		for _, name := range list(t, p.conn, p.leases) {
			if strings.Contains(name, "lease") && name != "leases" {
				return false
			}
		}
		return true
	})
}

// whole fails the test unless the client works, nothing stays behind, and all permits can be had.
func (p *semaphore) whole(t *testing.T) {
	t.Helper()
	release(t, p.take(t, p.limit))
	p.nothing(t)
	p.returns(t, p.all(t))
	p.noWatches(t, p.leases)
	p.noWatches(t, p.places)
}

// leaseOp is how a lease is created: with a check of the limit, but for kazoo.
func leaseOp(names zklock.Names) faultproxy.Op {
	if names == zklock.KazooNames {
		return faultproxy.OpCreate
	}
	return faultproxy.OpMulti
}

var permitForms = map[string]zklock.Names{"Curator": zklock.CuratorNames, "kazoo": zklock.KazooNames}

// Z1 for permits. A lease, and a place in the queue, is found by its guid when the creation, or the reply to it, was
// lost; or deleted, if the call has been given up by then, and also when it comes after that.
func TestPermitCreationLost(t *testing.T) {
	t.Parallel()
	for form, names := range permitForms {
		for what, lose := range losses {
			for _, waits := range []bool{false, true} {
				for _, givesUp := range []bool{false, true} {
					name := form + "/" + what + map[bool]string{false: " of a lease", true: " of a place"}[waits] + map[bool]string{true: ", given up"}[givesUp]
					t.Run(name, func(t *testing.T) {
						playSemaphore(t, names, 2, func(t *testing.T, p *semaphore) {
							parent := p.leases
							var all []*holdfast.Lock
							if waits {
								parent, all = p.places, p.all(t)
							}
							op := faultproxy.OpCreate
							if !waits {
								op = leaseOp(names)
							}
							loss := lose(p.proxy, op, parent+"/")
							reconnecting, reconnect := p.proxy.HoldRequest(faultproxy.OpConnect, "")
							defer reconnect()
							ctx, cancel := context.WithCancel(limited(t))
							defer cancel()
							got := p.acquiring(ctx, p.limit)
							lost := receive(t, "loss", loss)
							receive(t, "reconnection", reconnecting)
							if givesUp {
								cancel()
								checkGivenUp(t, got, holdfast.ErrDisconnected)
							}
							lists := p.proxy.Count(faultproxy.ToClient, faultproxy.OpGetChildren2)
							reconnect()
							switch {
							case givesUp && what == "request":
								eventually(t, "it looks for the node", func() bool {
									return p.proxy.Count(faultproxy.ToClient, faultproxy.OpSync) > 0 && p.proxy.Count(faultproxy.ToClient, faultproxy.OpGetChildren2) > lists
								})
								late, err := p.conn.Create(lost.Path, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
								must(t, err)
								eventually(t, "a late node is deleted", func() bool { ok, _, err := p.conn.Exists(late); return err == nil && !ok })
							case waits && !givesUp:
								p.waits(t, 1)
								release(t, all[0])
								all[0] = granted(t, got)
							case !givesUp:
								lock := granted(t, got)
								if what == "reply" {
									if node := nodeOf(t, p.client, lock); path.Base(node) != createdName(t, lost) {
										t.Errorf("the permit is %s, and the first creation made %s", node, createdName(t, lost))
									}
								}
								all = append(all, lock)
							}
							p.returns(t, all)
							p.whole(t)
						})
					})
				}
			}
		}
	}
}

// G5 for permits. Whoever gives up, at whatever step, returns at once and leaves nothing.
func TestPermitGivenUpAtEveryStep(t *testing.T) {
	t.Parallel()
	const look, place, lists = faultproxy.OpGetData, faultproxy.OpCreate, faultproxy.OpGetChildren2
	lease, kazooLease := leaseOp(zklock.CuratorNames), leaseOp(zklock.KazooNames)
	for _, step := range []struct {
		name  string
		kazoo bool
		op    faultproxy.Op
		below string // the key's znode
		after int    // so many of these
		waits bool   // no permit is free
		freed bool   // one is, later
	}{
		{name: "look", op: look},
		{name: "look at the leases", op: lists, below: "/leases"},
		{name: "lease", op: lease, below: "/leases"},
		{name: "confirm", op: lists, below: "/leases", after: 1},
		{name: "place", op: place, below: "/locks", waits: true},
		{name: "first in the queue", op: lists, below: "/locks", after: 1, waits: true},
		{name: "watch", op: lists, below: "/leases", after: 1, waits: true},
		{name: "lease for a place", op: lease, below: "/leases", waits: true, freed: true},
		{name: "confirm of a waiter", op: lists, below: "/leases", after: 2, waits: true, freed: true},
		{name: "lease of kazoo", kazoo: true, op: kazooLease, below: "/"},
		{name: "confirm of kazoo", kazoo: true, op: lists, after: 2},
		{name: "place of kazoo", kazoo: true, op: place, below: "-__lock__/", waits: true},
		{name: "first in kazoo's queue", kazoo: true, op: lists, below: "-__lock__", after: 1, waits: true},
		{name: "lease for a place of kazoo", kazoo: true, op: kazooLease, below: "/", waits: true, freed: true},
		{name: "confirm of a waiter of kazoo", kazoo: true, op: lists, below: "-__lock__", after: 2, waits: true, freed: true},
	} {
		for direction, hold := range holdings {
			t.Run(step.name+"/"+direction, func(t *testing.T) {
				names := zklock.CuratorNames
				if step.kazoo {
					names = zklock.KazooNames
				}
				playSemaphore(t, names, 2, func(t *testing.T, p *semaphore) {
					var all []*holdfast.Lock
					if step.waits {
						all = p.all(t)
					}
					for range step.after {
						_, pass := hold(p.proxy, step.op, p.parent+step.below)
						pass()
					}
					held, pass := hold(p.proxy, step.op, p.parent+step.below)
					defer pass()
					ctx, cancel := context.WithCancel(limited(t))
					defer cancel()
					got := p.acquiring(ctx, p.limit)
					if step.freed {
						p.waits(t, 1)
						eventually(t, "it watches the leases", func() bool { return p.proxy.Count(faultproxy.ToClient, lists) >= 5 })
						p.quiet(t)
						release(t, all[0])
						all = all[1:]
					}
					receive(t, "the step", held)
					cancel()
					if o := receive(t, "Acquire returns", got); !errors.Is(o.err, context.Canceled) {
						t.Errorf("Acquire returns %v, %v", o.lock, o.err)
					}
					pass()
					p.returns(t, all)
					p.whole(t)
				})
			})
		}
	}
}

// G5 for permits. Whoever gives up while its client deletes a lease that came too late leaves nothing either.
func TestPermitGivenUpAfterAVainLease(t *testing.T) {
	t.Parallel()
	for form, names := range permitForms {
		for direction, hold := range holdings {
			t.Run(form+"/"+direction, func(t *testing.T) {
				playSemaphore(t, names, 2, func(t *testing.T, p *semaphore) {
					all := []*holdfast.Lock{take(t, p.peer, p.key, p.limit)}
					late, create := p.proxy.HoldRequest(leaseOp(names), p.leases+"/")
					defer create()
					ctx, cancel := context.WithCancel(limited(t))
					defer cancel()
					got := p.acquiring(ctx, p.limit)
					receive(t, "the lease", late)
					all = append(all, take(t, p.peer, p.key, p.limit))
					held, pass := hold(p.proxy, faultproxy.OpDelete, p.leases+"/")
					defer pass()
					create()
					receive(t, "the deletion", held)
					cancel()
					if o := receive(t, "Acquire returns", got); !errors.Is(o.err, context.Canceled) {
						t.Errorf("Acquire returns %v, %v", o.lock, o.err)
					}
					pass()
					p.returns(t, all)
					p.whole(t)
				})
			})
		}
	}
}

// Z2 for permits. With the session a permit ends, and another has it; whoever waits queues again.
func TestPermitSessionExpires(t *testing.T) {
	t.Parallel()
	for form, names := range permitForms {
		t.Run(form, func(t *testing.T) {
			playOnBoth(t, &zklock.Options{SessionTimeout: longest, Names: names}, func(t *testing.T, s *scene) {
				p := newSemaphore(t, s, names, 2)
				lock := p.take(t, p.limit)
				other := take(t, p.peer, p.key, p.limit)
				theirs := acquiring(limited(t), p.peer, p.key, p.limit)
				p.waits(t, 1)
				ours := p.acquiring(limited(t), p.limit)
				before := p.waits(t, 2)
				p.expire()
				receive(t, "the end of the permit", lock.Done())
				if err := lock.Err(); !errors.Is(err, holdfast.ErrSessionExpired) {
					t.Errorf("the permit has ended with %v", err)
				}
				last := granted(t, theirs)
				eventually(t, "the waiter queues again", func() bool {
					names := list(t, p.conn, p.places)
					return len(names) == 1 && names[0] != path.Base(before)
				})
				silent(t, "a third permit of two", ours)
				must(t, other.Err())
				release(t, other)
				p.returns(t, []*holdfast.Lock{last, granted(t, ours)})
				p.whole(t)
			})
		})
	}
}

// Of several who have a permit, each is told, reached and guarded alone, and its end lets one who waits in.
func TestPermitHolders(t *testing.T) {
	t.Parallel()
	for form, names := range permitForms {
		t.Run(form, func(t *testing.T) {
			playSemaphore(t, names, 2, func(t *testing.T, p *semaphore) {
				first := p.take(t, p.limit, holdfast.WithOwner("first"))
				second := p.take(t, p.limit, holdfast.WithOwner("second"), holdfast.WithTTL(time.Minute))
				must(t, second.SetData(limited(t), []byte("more")))
				next := acquiring(limited(t), p.peer, p.key, p.limit)
				p.waits(t, 1)
				info, err := p.peer.Inspect(limited(t), p.key)
				if err != nil || info.Limit != 2 || len(info.Holders) != 2 || string(info.Holders[1].Data) != "more" || len(info.Holders[0].Data) != 0 || len(info.Queue) != 1 {
					t.Fatalf("Inspect returns %+v, %v", info, err)
				}
				guards := make(map[*holdfast.Lock]any)
				for _, lock := range []*holdfast.Lock{first, second} {
					guard, err := p.client.Guard(lock)
					must(t, err)
					must(t, errOf(p.peer.Conn().Multi(guard)))
					guards[lock] = guard
				}
				for grant := range info.Each() {
					if grant.Owner == "first" {
						must(t, p.peer.Break(limited(t), grant))
					}
				}
				receive(t, "the end of the first", first.Done())
				if err := first.Err(); !errors.Is(err, holdfast.ErrBroken) {
					t.Errorf("the first has ended with %v", err)
				}
				third := granted(t, next)
				if err := errOf(p.peer.Conn().Multi(guards[first])); err == nil {
					t.Error("the guard of a broken permit holds")
				}
				must(t, errOf(p.peer.Conn().Multi(guards[second])))
				must(t, second.Verify(limited(t)))

				next = acquiring(limited(t), p.peer, p.key, p.limit)
				p.waits(t, 1)
				release(t, third)
				brief := granted(t, next)
				release(t, brief)
				brief = p.take(t, p.limit, holdfast.WithTTL(100*time.Millisecond))
				next = acquiring(limited(t), p.peer, p.key, p.limit)
				receive(t, "the end of the brief one", brief.Done())
				if err := brief.Err(); !errors.Is(err, holdfast.ErrTTLExpired) {
					t.Errorf("the brief one has ended with %v", err)
				}
				p.returns(t, []*holdfast.Lock{second, granted(t, next)})
				p.whole(t)
			})
		})
	}
}
