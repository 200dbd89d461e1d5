package integration_test

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

const kazooObjects = `
import sys
from kazoo.client import KazooClient
c = KazooClient(hosts=sys.argv[1], timeout=20)
c.start()
objects = [c.Lock("/kzlock"), c.WriteLock("/kzwrite"), c.Semaphore("/kzsem", max_leases=2)]
for line in sys.stdin:
    said = []
    for x in objects:
        try:
            x.acquire(timeout=30)
            x.release()
        except Exception as e:
            said.append(type(x).__name__ + " " + type(e).__name__)
    print(", ".join(said) or "ok", flush=True)
`

// Objects of kazoo live on after the server has removed all empty containers: with KazooNames parents are none.
func TestKazooObjects_ContainersReaped_LiveOn(t *testing.T) {
	start(t)
	s := zkserver.New(t, reaping())
	opts := options()
	opts.Names = zklock.KazooNames
	kazoo := dial(t, s.Addr(), opts)
	curator := dial(t, s.Addr(), nil)
	cmd := exec.Command(kazooCommand(t)[0], "-c", kazooObjects, s.Addr())
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	defer func() { check(t, cmd.Wait()) }()
	defer in.Close()
	lines := bufio.NewScanner(out)
	conn := plain(t, s.Addr())
	keys := map[string][]holdfast.Option{"/kzlock": nil, "/kzwrite": nil, "/kzsem": {holdfast.WithLimit(2)}}
	for key, opts := range keys {
		lock, err := kazoo.Acquire(limited(t), key, opts...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Create(key+"/keep", nil, 0, zk.WorldACL(zk.PermAll)) // until kazoo has seen the parent
		check(t, err)
		check(t, lock.Release(limited(t)))
	}
	for round := range 2 {
		fmt.Fprintln(in, "go")
		if !lines.Scan() || strings.TrimSpace(lines.Text()) != "ok" {
			t.Fatalf("round %d: kazoo says %q, %v", round, lines.Text(), lines.Err())
		}
		if round > 0 {
			break
		}
		for key := range keys {
			check(t, conn.Delete(key+"/keep", -1))
		}
		lock, err := curator.Acquire(limited(t), "/last") // is removed after all containers that are empty now
		if err != nil {
			t.Fatal(err)
		}
		check(t, lock.Release(limited(t)))
		eventually(t, "an empty container is removed", func() bool {
			exists, _, err := conn.Exists("/last")
			return err == nil && !exists
		})
	}
}
