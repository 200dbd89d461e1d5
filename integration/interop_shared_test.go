package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// An interopPair is one of our forms of names and a lock of another program: whether the other waits when our reader or our
// writer holds the key, and what our reader and our writer do when the other holds it.
type interopPair struct {
	us                       fleetLanguage
	peer                     fleetLanguage
	recipe                   string
	forReader, forWriter     manners
	readerWaits, writerWaits manners
}

// interopPairs is the measured behaviour, as docs/zookeeper.md lists it.
var interopPairs = []interopPair{
	{peerZklockRW, peerCurator, "InterProcessReadWriteLock.writeLock", waiting, waiting, waiting, waiting},
	{peerZklockRW, peerCurator, "InterProcessReadWriteLock.readLock", sharing, waiting, sharing, waiting},
	{peerZklockRW, peerCurator, "InterProcessMutex", passing, passing, refusing, refusing},
	{peerZklock, peerCurator, "InterProcessMutex", waiting, waiting, waiting, waiting},
	{peerZklock, peerCurator, "InterProcessReadWriteLock.writeLock", passing, passing, refusing, waiting},
	{peerZklock, peerCurator, "InterProcessReadWriteLock.readLock", sharing, passing, refusing, waiting},
	{peerZklock, peerCurator, "LeaderLatch", passing, passing, refusing, waiting},
	{peerZklock, peerKazoo, "WriteLock", passing, passing, waiting, waiting},
	{peerZklock, peerKazooExtra, "WriteLock", waiting, waiting, waiting, waiting},
	{peerZklock, peerKazooExtra, "ReadLock", waiting, waiting, sharing, waiting},
	{peerZklockKazoo, peerKazoo, "WriteLock", waiting, waiting, waiting, waiting},
	{peerZklockKazoo, peerKazoo, "ReadLock", sharing, waiting, sharing, waiting},
	{peerZklockKazoo, peerKazoo, "Lock", passing, waiting, waiting, waiting},
	{peerZklockKazoo, peerCurator, "InterProcessMutex", passing, passing, refusing, waiting},
}

// TestInteropShared lets each of our readers and writers be held while another program's lock contends, and the reverse, with
// real programs on a real server: who shares, who waits, who does not, and where we refuse. It checks the table of
// docs/zookeeper.md, and prints the measured one.
func TestInteropShared(t *testing.T) {
	start(t)
	c := newInteropCell(t, server(t).Addr(), peerZklock, peerZklockRW, peerZklockKazoo, peerCurator, peerKazoo, peerKazooExtra)
	measured := []string{interopPairsHead}
	for _, pair := range interopPairs {
		t.Run(fmt.Sprintf("%s, %s %s", pair.us, pair.peer, pair.recipe), func(t *testing.T) {
			recipe := pair.recipe
			if recipe == "InterProcessMutex" {
				recipe = ""
			}
			shares := strings.Contains(strings.ToLower(recipe), "readlock")
			got := pair
			got.forReader = beside(c.manners(t, pair.us, sharedRecipe, pair.peer, recipe), shares)
			got.forWriter = c.manners(t, pair.us, "", pair.peer, recipe)
			got.readerWaits = beside(c.manners(t, pair.peer, recipe, pair.us, sharedRecipe), shares)
			got.writerWaits = c.manners(t, pair.peer, recipe, pair.us, "")
			if got != pair {
				t.Errorf("measured\n%s\nwant\n%s", got.row(), pair.row())
			}
			measured = append(measured, got.row())
		})
		if c.meeting {
			verdict.Inconclusive(t, "they did not part")
		}
	}
	t.Logf("with Curator %s and kazoo %s:\n%s", c.peers[peerCurator].version, c.peers[peerKazoo].version, strings.Join(measured, "\n"))
}

// beside is how readers pass each other.
func beside(m manners, readers bool) manners {
	if readers && m == passing {
		return sharing
	}
	return m
}

const interopPairsHead = "| `Names` | other program | it waits for our reader | for our writer | our reader waits for it | our writer does |"

func (p interopPair) row() string {
	form := map[fleetLanguage]string{peerZklock: "CuratorNames", peerZklockRW: "CuratorRWNames", peerZklockKazoo: "KazooNames"}[p.us]
	name := fmt.Sprintf("%s `%s`", p.peer, p.recipe)
	if p.peer == peerKazooExtra {
		name = fmt.Sprintf("%s `%s` with `extra_lock_patterns=[\"lock-\"]`", peerKazoo, p.recipe)
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |", form, name, p.forReader, p.forWriter, p.readerWaits, p.writerWaits)
}

// TestInteropSharedIsDocumented checks docs/zookeeper.md against the expectations of TestInteropShared.
func TestInteropSharedIsDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join("..", "docs", "zookeeper.md"))
	must(t, err)
	want := []string{interopPairsHead}
	for _, pair := range interopPairs {
		want = append(want, pair.row())
	}
	for _, row := range want {
		if !strings.Contains(string(doc), row) {
			t.Errorf("docs/zookeeper.md lacks\n%s", row)
		}
	}
}
