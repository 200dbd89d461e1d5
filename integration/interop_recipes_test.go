package integration_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// An interopRecipe is a recipe of another program besides its plain lock, on the same
// kinds of paths, and how it interacts with ours.
type interopRecipe struct {
	peer fleetLanguage
	name string
	// For each of our locks: what the recipe does when we hold it, and what we do when the
	// recipe holds it.
	waits, awaited map[fleetLanguage]manners
}

// Manners are how a contender treats a lock that another one holds.
type manners string

const (
	waiting manners = "yes"
	passing manners = "**no**"
	// Of shared locks.
	sharing  manners = "shares"
	refusing manners = "refuses" // a NamesError
)

// formsOfOurs are our locks in each form of names, in the order of the table.
var formsOfOurs = []fleetLanguage{peerZklock, peerZklockKazoo, peerZklockLatch}

// of are the manners towards each of ours.
func of(each ...manners) map[fleetLanguage]manners {
	all := make(map[fleetLanguage]manners)
	for i, us := range formsOfOurs {
		all[us] = each[i]
	}
	return all
}

func ofAll(m manners) map[fleetLanguage]manners { return of(m, m, m) }

// interopRecipes is the measured behaviour, as docs/zookeeper.md lists it.
var interopRecipes = []interopRecipe{
	{peerCurator, "InterProcessReadWriteLock.writeLock", ofAll(passing), ofAll(waiting)},
	{peerCurator, "InterProcessReadWriteLock.readLock", ofAll(passing), ofAll(waiting)},
	{peerCurator, "LeaderLatch", of(passing, passing, waiting), ofAll(waiting)},
	{peerCurator, "LeaderSelector", of(waiting, passing, passing), ofAll(waiting)},
	{peerKazoo, "ReadLock", of(passing, waiting, passing), ofAll(waiting)},
	{peerKazoo, "WriteLock", of(passing, waiting, passing), ofAll(waiting)},
	{peerKazoo, "Election", of(passing, waiting, passing), ofAll(waiting)},
	{peerKazooExtra, "ReadLock", of(waiting, waiting, passing), ofAll(waiting)},
	{peerKazooExtra, "WriteLock", of(waiting, waiting, passing), ofAll(waiting)},
}

// TestInteropRecipes lets each of our locks be held while each other recipe contends, and
// the reverse, with real programs on a real server. It checks the table of
// docs/zookeeper.md: who waits for whom and who does not, so that nobody relies on two
// recipes that do not exclude each other. It prints the measured table.
func TestInteropRecipes(t *testing.T) {
	start(t)
	c := newInteropCell(t, server(t).Addr(), peerZklock, peerZklockKazoo, peerZklockLatch, peerCurator, peerKazoo, peerKazooExtra)
	measured := []string{"| recipe | waits for us, `CuratorNames` | `KazooNames` | `CuratorLatchNames` | we wait for it, in any form |"}
	for _, recipe := range interopRecipes {
		t.Run(fmt.Sprintf("%s %s", recipe.peer, recipe.name), func(t *testing.T) {
			waits, awaited := make(map[fleetLanguage]manners), make(map[fleetLanguage]manners)
			for _, us := range formsOfOurs {
				waits[us] = c.manners(t, us, "", recipe.peer, recipe.name)
				awaited[us] = c.manners(t, recipe.peer, recipe.name, us, "")
				if waits[us] != recipe.waits[us] {
					t.Errorf("wants what %s holds, and waits: %s, want %s", us, waits[us], recipe.waits[us])
				}
				if awaited[us] != recipe.awaited[us] {
					t.Errorf("holds what %s wants, which waits: %s, want %s", us, awaited[us], recipe.awaited[us])
				}
			}
			measured = append(measured, recipe.row(waits, awaited))
		})
		if c.meeting {
			verdict.Inconclusive(t, "they did not part")
		}
	}
	t.Logf("with Curator %s and kazoo %s:\n%s", c.peers[peerCurator].version, c.peers[peerKazoo].version, strings.Join(measured, "\n"))
}

// TestInteropRecipesAreDocumented checks docs/zookeeper.md against the expectations of
// TestInteropRecipes.
func TestInteropRecipesAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join("..", "docs", "zookeeper.md"))
	must(t, err)
	for _, recipe := range interopRecipes {
		if row := recipe.row(recipe.waits, recipe.awaited); !strings.Contains(string(doc), row) {
			t.Errorf("docs/zookeeper.md lacks\n%s", row)
		}
	}
}

// row is a recipe's line of a table in Markdown.
func (r interopRecipe) row(waits, awaited map[fleetLanguage]manners) string {
	name := fmt.Sprintf("%s `%s`", r.peer, r.name)
	if r.peer == peerKazooExtra {
		name = fmt.Sprintf("%s `%s` with `extra_lock_patterns=[\"lock-\"]`", peerKazoo, r.name)
	}
	cell := awaited[peerZklock]
	for _, us := range formsOfOurs {
		if awaited[us] != cell {
			cell = "it depends"
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", name, waits[peerZklock], waits[peerZklockKazoo], waits[peerZklockLatch], cell)
}

// manners lets one hold its lock of a path, and reports what another one does that wants
// the same path. A recipe of "" is the peer's own lock.
func (c *interopCell) manners(t *testing.T, holder fleetLanguage, holds string, contender fleetLanguage, wants string) manners {
	t.Helper()
	c.meeting = true
	// The first contender creates it: some refuse parents that others have created.
	key := "/" + newKey(t)
	h, o := c.peers[holder].in(t), c.peers[contender].in(t)
	h.do("acquire", words(key, holds)...)
	h.says(fleetAcquired)
	held := ephemerals(t, c.conn, key)
	if len(held) == 0 {
		verdict.Fatalf(t, "%s %s holds %s, and nothing shows it", holder, holds, key)
	}
	o.do("acquire", words(key, wants)...)
	did := c.does(t, key, held, o)
	if now := ephemerals(t, c.conn, key); !slices.ContainsFunc(now, func(e ephemeral) bool { return e == held[0] }) {
		t.Errorf("%s %s is done before it releases: %v is not among %v", holder, holds, held[0], now)
	}
	h.release()
	if did == waiting {
		o.says(fleetAcquired)
	}
	if did != refusing {
		o.release()
	}
	eventually(t, "nobody is left at "+key, func() bool { return len(ephemerals(t, c.conn, key)) == 0 })
	c.meeting = false
	return did
}

// words are the words of an order, without the recipe if it is a peer's own lock.
func words(key, recipe string) []string {
	if recipe == "" {
		return []string{key}
	}
	return []string{key, recipe}
}

// does returns what a peer does that was ordered to acquire a lock that others hold by
// nodes below a path.
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

// TestInteropDowngrade makes Curator acquire a read lock while it has the write lock, and
// then release the write lock, with one of our clients waiting behind the writer. Nobody
// gets the lock beside Curator's reader. From 5.5 on that reader takes its writer's place
// in the queue, before contenders that came in between. Older versions put it at the end:
// those contenders cannot distinguish it from a later reader, and get the lock beside it.
func TestInteropDowngrade(t *testing.T) {
	start(t)
	c := newInteropCell(t, server(t).Addr(), peerZklock, peerZklockKazoo, peerCurator)
	for _, names := range []zklock.Names{zklock.CuratorNames, zklock.KazooNames} {
		t.Run(names.String()+" names", func(t *testing.T) {
			us := c.peers[map[zklock.Names]fleetLanguage{zklock.CuratorNames: peerZklock, zklock.KazooNames: peerZklockKazoo}[names]].in(t)
			curator, key := c.peers[peerCurator].in(t), "/"+newKey(t)
			curator.do("acquire", key, "InterProcessReadWriteLock.writeLock")
			curator.says(fleetAcquired)
			writer := ephemerals(t, c.conn, key)
			us.do("acquire", key)
			if did := c.does(t, key, writer, us); did != waiting {
				t.Fatalf("behind a writer: %s", did)
			}
			curator.do("downgrade")
			curator.says("downgraded")
			reader := list(t, c.conn, key)
			reader = slices.DeleteFunc(reader, func(name string) bool { return !strings.Contains(name, "__READ__") })
			if len(reader) != 1 {
				t.Fatalf("readers in the queue: %q", reader)
			}
			inPlace := strings.HasSuffix(reader[0], writer[0].path[len(writer[0].path)-10:])
			t.Logf("Curator %s: the reader is in its writer's place: %v", curator.version, inPlace)
			if inPlace {
				held := slices.DeleteFunc(ephemerals(t, c.conn, key), func(e ephemeral) bool { return path.Base(e.path) != reader[0] })
				if did := c.does(t, key, held, us); did != waiting {
					t.Errorf("behind a reader that was the writer: %s", did)
					curator.release()
					us.release()
					return
				}
				curator.release()
				us.says(fleetAcquired)
				us.release()
			} else {
				us.says(fleetAcquired)
				us.release()
				curator.release()
			}
			eventually(t, "nobody is left at "+key, func() bool { return len(ephemerals(t, c.conn, key)) == 0 })
		})
	}
}
