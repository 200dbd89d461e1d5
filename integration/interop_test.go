package integration_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// interopPeers are the locks of all programs.
var interopPeers = []fleetLanguage{peerZklock, peerZklockKazoo, peerCurator, peerGo, peerKazoo, peerKazooExtra, peerRenamed}

// respects lists, for each peer, the peers for whose locks it waits, as documented in docs/zookeeper.md. Every peer waits for its own kind.
var respects = map[fleetLanguage][]fleetLanguage{
	peerZklock:      interopPeers,
	peerZklockKazoo: interopPeers,
	peerGo:          interopPeers,
	peerKazooExtra:  interopPeers,
	// It compares the part of a name behind "lock-", and sorts kazoo's names to the end.
	peerCurator: {peerZklock, peerCurator, peerGo, peerRenamed},
	// It recognises only its own names as contenders.
	peerKazoo:   {peerZklockKazoo, peerKazoo, peerKazooExtra},
	peerRenamed: {peerZklock, peerCurator, peerGo, peerRenamed},
}

// TestInterop lets one program hold its lock of a path while another one contends for it, step by step, with real programs on a real
// server. It checks the tables in the documentation about shared paths.
func TestInterop(t *testing.T) {
	start(t)
	c := newInteropCell(t, server(t).Addr(), append([]fleetLanguage{peerZklockLatch, peerZklockRW}, interopPeers...)...)
	t.Logf("with Curator %s and kazoo %s", c.peers[peerCurator].version, c.peers[peerKazoo].version)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Respect", c.respect},
		{"Recipes", c.recipes},
		{"Shared", c.shared},
		{"Permits", c.permits},
		{"Downgrade", c.downgrade},
		{"Owners", c.owners},
		{"Revoker", c.revoker},
		{"Strangers", c.strangers},
	} {
		t.Run(part.name, part.run)
		if c.meeting {
			verdict.Inconclusive(t, "they did not part")
		}
	}
}

// interopCell has one peer of each kind.
type interopCell struct {
	addr    string
	conn    *zk.Conn
	peers   map[fleetLanguage]*peer
	meeting bool // or the peers failed, and are of no more use
}

func newInteropCell(t *testing.T, addr string, who ...fleetLanguage) *interopCell {
	t.Helper()
	c := &interopCell{addr: addr, conn: plain(t, addr), peers: make(map[fleetLanguage]*peer)}
	var (
		mu  sync.Mutex
		all sync.WaitGroup
	)
	for _, kind := range who {
		all.Go(func() {
			p := zkPeer(t, addr, kind, strings.ReplaceAll(string(kind), " ", "-"), options().SessionTimeout, nil)
			mu.Lock()
			defer mu.Unlock()
			c.peers[kind] = p
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for _, p := range c.peers {
			p.finish(t)
		}
	})
	return c
}

// in returns the peer for use in a subtest.
func (p *peer) in(t *testing.T) *peer {
	q := *p
	q.t = t
	return &q
}

// Manners are how a contender treats a lock that another one holds, as docs/zookeeper.md calls them.
type manners string

const (
	waiting manners = "yes"
	passing manners = "**no**"
	// Of shared locks.
	sharing  manners = "shares"
	refusing manners = "refuses" // a NamesError
)

// respect checks each pair of programs.
func (c *interopCell) respect(t *testing.T) {
	for _, holder := range interopPeers {
		for _, contender := range interopPeers {
			if holder == contender {
				continue
			}
			t.Run(fmt.Sprintf("%s holds, %s contends", holder, contender), func(t *testing.T) {
				want := passing
				if slices.Contains(respects[contender], holder) {
					want = waiting
				}
				if got := c.manners(t, holder, "", contender, ""); got != want {
					t.Errorf("it waits: %s, want %s", got, want)
				}
			})
		}
	}
}

// documentedRows are the cells of a table of docs/zookeeper.md that begins with a head.
func documentedRows(t *testing.T, head string) (rows [][]string) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "docs", "zookeeper.md"))
	must(t, err)
	_, table, _ := strings.Cut(string(doc), head+"\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, line := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		rows = append(rows, cells)
	}
	if len(rows) < 5 {
		t.Fatalf("docs/zookeeper.md has the rows %q", rows)
	}
	return rows
}

var documentedRecipe = regexp.MustCompile("^(Curator|kazoo) `([\\w.]+)`( with `extra_lock_patterns=\\[\"lock-\"\\]`)?$")

// recipe returns the program and the recipe of a documented row.
func recipe(t *testing.T, text string) (fleetLanguage, string) {
	t.Helper()
	m := documentedRecipe.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("docs/zookeeper.md has an unknown recipe: %s", text)
	}
	if m[3] != "" {
		return peerKazooExtra, m[2]
	}
	return map[string]fleetLanguage{"Curator": peerCurator, "kazoo": peerKazoo}[m[1]], m[2]
}

// recipes checks the table of recipes: which contenders wait and which do not.
func (c *interopCell) recipes(t *testing.T) {
	const head = "| recipe | waits for us, `CuratorNames` | `KazooNames` | `CuratorLatchNames` | we wait for it, in any form |"
	for _, row := range documentedRows(t, head) {
		t.Run(row[0], func(t *testing.T) {
			peer, name := recipe(t, row[0])
			for i, us := range []fleetLanguage{peerZklock, peerZklockKazoo, peerZklockLatch} {
				if got := c.manners(t, us, "", peer, name); string(got) != row[1+i] {
					t.Errorf("it waits for %s: %s, want %s", us, got, row[1+i])
				}
				if got := c.manners(t, peer, name, us, ""); string(got) != row[4] {
					t.Errorf("%s waits for it: %s, want %s", us, got, row[4])
				}
			}
		})
	}
}

// shared checks the table of readers and writers: which share, which wait, which do not, and where we refuse.
func (c *interopCell) shared(t *testing.T) {
	const head = "| `Names` | other program | it waits for our reader | for our writer | our reader waits for it | our writer does |"
	forms := map[string]fleetLanguage{"`CuratorNames`": peerZklock, "`CuratorRWNames`": peerZklockRW, "`KazooNames`": peerZklockKazoo}
	for _, row := range documentedRows(t, head) {
		t.Run(row[0]+" "+row[1], func(t *testing.T) {
			us := forms[row[0]]
			peer, name := recipe(t, row[1])
			reads := strings.Contains(strings.ToLower(name), "readlock")
			beside := func(m manners) manners { // how readers pass each other
				if reads && m == passing {
					return sharing
				}
				return m
			}
			got := []manners{
				beside(c.manners(t, us, sharedRecipe, peer, name)), c.manners(t, us, "", peer, name),
				beside(c.manners(t, peer, name, us, sharedRecipe)), c.manners(t, peer, name, us, ""),
			}
			if fmt.Sprint(got) != fmt.Sprint(row[2:]) {
				t.Errorf("measured %q, want %q", got, row[2:])
			}
		})
	}
}

// permits lets two permits be held while another program wants its lock, and the reverse: to the other program each permit is an
// exclusive lock.
func (c *interopCell) permits(t *testing.T) {
	limit := holdfast.WithLimit(2)
	for _, pair := range []struct {
		peer   fleetLanguage
		recipe string
		names  zklock.Names
	}{
		{peerCurator, "", zklock.CuratorNames},
		{peerCurator, "InterProcessReadWriteLock.readLock", zklock.CuratorRWNames},
		{peerCurator, "InterProcessReadWriteLock.writeLock", zklock.CuratorRWNames},
		{peerKazoo, "", zklock.KazooNames},
		{peerGo, "", zklock.CuratorNames},
	} {
		t.Run(string(pair.peer)+" "+pair.recipe+" "+pair.names.String(), func(t *testing.T) {
			key, peer := persistent(t, c.conn), c.peers[pair.peer].in(t)
			client := dial(t, c.addr, &zklock.Options{Names: pair.names})
			first, second := take(t, client, key, limit), take(t, client, key, limit)
			held := ephemerals(t, c.conn, key)
			peer.do("acquire", words(key, pair.recipe)...)
			if did := c.does(t, key, held, peer); did != waiting {
				t.Errorf("it does not wait for a permit: %s", did)
			}
			release(t, first)
			release(t, second)
			peer.says(fleetAcquired)
			if _, err := client.TryAcquire(limited(t), key, limit); !errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("a permit beside its lock: %v", err)
			}
			got := acquiring(limited(t), client, key, limit)
			holds(t, c.conn, key, 2)
			silent(t, "permit beside its lock", got)
			peer.release()
			release(t, granted(t, got))
		})
	}
}

// downgrade makes Curator acquire a read lock while it has the write lock, and then release the write lock, with one of our clients waiting
// behind the writer. From 5.5 on the reader takes its writer's place in the queue, before contenders in between. Older versions put it at
// the end, where the contenders cannot distinguish it from a later reader, and get the lock beside it.
func (c *interopCell) downgrade(t *testing.T) {
	for _, us := range []fleetLanguage{peerZklock, peerZklockKazoo} {
		t.Run(string(us), func(t *testing.T) {
			us, curator, key := c.peers[us].in(t), c.peers[peerCurator].in(t), "/"+newKey(t)
			curator.do("acquire", key, "InterProcessReadWriteLock.writeLock")
			curator.says(fleetAcquired)
			writer := ephemerals(t, c.conn, key)
			us.do("acquire", key)
			if did := c.does(t, key, writer, us); did != waiting {
				t.Fatalf("behind a writer: %s", did)
			}
			curator.do("downgrade")
			curator.says("downgraded")
			reader := slices.DeleteFunc(ephemerals(t, c.conn, key), func(e ephemeral) bool { return !strings.Contains(e.path, "__READ__") })
			if len(reader) != 1 {
				t.Fatalf("readers in the queue: %v", reader)
			}
			inPlace := strings.HasSuffix(reader[0].path, writer[0].path[len(writer[0].path)-10:])
			t.Logf("Curator %s: the reader is in its writer's place: %v", curator.version, inPlace)
			if inPlace {
				if did := c.does(t, key, reader, us); did != waiting {
					t.Fatalf("behind a reader that was the writer: %s", did)
				}
				curator.release()
			}
			us.says(fleetAcquired)
			us.release()
			if !inPlace {
				curator.release()
			}
			eventually(t, "nothing is left at "+key, func() bool { return len(ephemerals(t, c.conn, key)) == 0 })
		})
	}
}

// manners lets one program hold its lock of a path, and reports what another one does that wants the same path. A recipe of "" is
// the peer's own lock. Tokens rise.
func (c *interopCell) manners(t *testing.T, holder fleetLanguage, holds string, contender fleetLanguage, wants string) manners {
	t.Helper()
	c.meeting = true
	// The first contender creates it: some refuse parents that others have created.
	key := "/" + newKey(t)
	h, o := c.peers[holder].in(t), c.peers[contender].in(t)
	h.do("acquire", words(key, holds)...)
	token := h.says(fleetAcquired).Token
	held := ephemerals(t, c.conn, key)
	if len(held) == 0 {
		verdict.Fatalf(t, "%s %s holds %s, and no node shows it", holder, holds, key)
	}
	o.do("acquire", words(key, wants)...)
	did := c.does(t, key, held, o)
	if now := ephemerals(t, c.conn, key); !slices.Contains(now, held[0]) {
		t.Errorf("%s %s is done before it releases: %v is not among %v", holder, holds, held[0], now)
	}
	h.release()
	if did == waiting {
		if next := o.says(fleetAcquired).Token; token != 0 && next != 0 && next <= token {
			t.Errorf("token %d after %d", next, token)
		}
	}
	if did != refusing {
		o.release()
	}
	eventually(t, "nothing is left at "+key, func() bool { return len(ephemerals(t, c.conn, key)) == 0 })
	c.meeting = false
	return did
}

// words are the words of an order, without the recipe if it is a peer's own lock.
func words(key, recipe string) []string {
	if own := []string{"", "InterProcessMutex", "Lock"}; slices.Contains(own, recipe) {
		return []string{key}
	}
	return []string{key, recipe}
}

// does returns how a peer treats a lock that others hold by nodes below a path, after the order to acquire it.
func (c *interopCell) does(t *testing.T, key string, held []ephemeral, o *peer) (did manners) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is granted %s, or waits, or fails", o.language, key), func() bool {
		select {
		case r := <-o.answers:
			switch {
			case r.What == fleetAcquired:
				did = passing
			case r.What == peerFailed && strings.Contains(r.Note, "ignores names"):
				did = refusing
			default:
				verdict.Fatalf(t, "%s answers %s %q", o.language, r.What, r.Note)
			}
			return true
		default:
		}
		watches, err := zkserver.Watches(limited(t), c.addr)
		must(t, err)
		if slices.ContainsFunc(held, func(e ephemeral) bool {
			return slices.ContainsFunc(watches[e.path], func(session int64) bool { return session != e.session })
		}) {
			did = waiting
		}
		return did != ""
	})
	return did
}

// An ephemeral is a node that ends with a session.
type ephemeral struct {
	path    string
	session int64
}

// ephemerals returns all ephemeral nodes below a znode, which need not exist.
func ephemerals(t *testing.T, conn *zk.Conn, parent string) (found []ephemeral) {
	t.Helper()
	for _, name := range list(t, conn, parent) {
		node := path.Join(parent, name)
		_, stat, err := conn.Get(node)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			t.Fatal(err)
		case stat.EphemeralOwner != 0:
			found = append(found, ephemeral{node, stat.EphemeralOwner})
		default:
			found = append(found, ephemerals(t, conn, node)...)
		}
	}
	return found
}

// persistent returns a new znode for a lock that no server removes while the lock is free.
func persistent(t *testing.T, conn *zk.Conn) string {
	t.Helper()
	p := "/" + newKey(t)
	must(t, errOf(conn.Create(p, nil, 0, zk.WorldACL(zk.PermAll))))
	return p
}
