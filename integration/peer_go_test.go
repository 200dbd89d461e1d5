package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/zklock"
)

// peerChild is a peer in Go. Arguments: the key of goDials, and the arguments of the dial.
const peerChild = "peer"

func init() { children[peerChild] = runPeer }

// goPeerCommand is the command line of a peer in Go, for env. The race detector reports go-zookeeper's own races; listen
// looks for others.
func goPeerCommand(arguments ...string) []string {
	return append([]string{"GORACE=exitcode=0 atexit_sleep_ms=0", childVariable + "=" + peerChild, os.Args[0]}, arguments...)
}

var goDials = map[string]func(arguments []string) (goLocks, error){
	"zklock": dialZklock, "election": dialElection, "go-zookeeper": dialGoZookeeper, "dynamolock": dialDynamolock,
}

// goLocks is the lock of such a peer. Only live is called while another method runs; it reports on the last result of acquire.
type goLocks interface {
	acquire(path string) (at int64, token uint64, err error) // at: when it was granted
	live() error                                             // nil: it counts as live
	release() error
	close()
}

func runPeer() int {
	locks, err := goDials[os.Args[1]](os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	p := &goPeer{locks: locks}
	orders := make(chan string)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			orders <- lines.Text()
		}
		p.end()
		locks.close()
		os.Exit(0)
	}()
	go func() {
		for range time.Tick(fleetStamp) {
			p.stamp()
		}
	}()
	report(fleetReport{What: fleetReady})
	for order := range orders {
		p.obey(order)
	}
	return 0
}

// goPeer obeys orders, and reports the lock that it believes to hold.
type goPeer struct {
	locks goLocks

	mu     sync.Mutex
	held   bool
	token  uint64
	closed bool
}

// end makes the peer report no hold from now on.
func (p *goPeer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.closed = false, true
}

func report(r fleetReport) {
	if r.At == 0 {
		r.At = history.Now()
	}
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		os.Exit(1) // the parent has ended
	}
}

func (p *goPeer) obey(order string) {
	what, path, _ := strings.Cut(order, " ")
	switch what {
	case "acquire":
		at, token, err := p.locks.acquire(path)
		if err != nil {
			report(fleetReport{What: peerFailed, Note: err.Error()})
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closed {
			return
		}
		p.held, p.token = true, token
		report(fleetReport{What: fleetAcquired, At: at, Token: token})
	case "release":
		p.stamp()
		p.mu.Lock()
		p.held = false
		p.mu.Unlock()
		note := ""
		if err := p.locks.release(); err != nil {
			note = err.Error()
		}
		report(fleetReport{What: fleetReleased, Token: p.token, Note: note})
	default:
		report(fleetReport{What: peerFailed, Note: "unknown order " + order})
	}
}

// stamp reports whether the peer still believes in its lock. It reads the time first: the
// lock's answer was true at that time, however long it took.
func (p *goPeer) stamp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.held {
		return
	}
	at := history.Now()
	if err := p.locks.live(); err != nil {
		p.held = false
		report(fleetReport{What: fleetLost, Token: p.token, Note: err.Error()})
		return
	}
	report(fleetReport{What: fleetHolding, At: at, Token: p.token})
}

// clientLocks are ours, on any engine.
type clientLocks struct {
	client interface {
		acquirer
		Close(context.Context) error
	}
	lock *holdfast.Lock
}

func dialZklock(arguments []string) (goLocks, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	addr, session, owner := zkArguments(arguments)
	opts := &zklock.Options{SessionTimeout: session, Names: forms[arguments[3]], Owner: owner}
	client, err := zklock.Dial(ctx, []string{addr}, opts)
	return &clientLocks{client: client}, err
}

func dialDynamolock(arguments []string) (goLocks, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var c fleetConfig
	if err := json.Unmarshal([]byte(arguments[0]), &c); err != nil {
		return nil, err
	}
	client, err := dynamolock.New(ctx, fleetService(), c.options())
	return &clientLocks{client: client}, err
}

func (c *clientLocks) acquire(path string) (int64, uint64, error) {
	var opts []holdfast.Option
	path, recipe, _ := strings.Cut(path, " ")
	if recipe == sharedRecipe {
		opts = append(opts, holdfast.WithShared())
	}
	if recipe == limitRecipe {
		opts = append(opts, holdfast.WithLimit(2))
	}
	lock, err := c.client.Acquire(context.Background(), path, opts...)
	if err != nil {
		return 0, 0, err
	}
	c.lock = lock
	at := history.Now()
	return at, uint64(lock.Token()), lock.Err()
}

func (c *clientLocks) live() error { return c.lock.Err() }

func (c *clientLocks) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.lock.Release(ctx)
}

func (c *clientLocks) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.client.Close(ctx)
}

// goZookeeperLocks are go-zookeeper's own. They do not report losses: users can watch for the end of the session, as this does.
type goZookeeperLocks struct {
	addr    string
	session time.Duration
	owner   string

	conn    *zk.Conn
	lock    *zk.Lock // nil: none, or a released one
	expired *atomic.Bool
}

// zkArguments are the server, the session timeout in milliseconds, and the owner.
func zkArguments(arguments []string) (addr string, session time.Duration, owner string) {
	ms, err := strconv.Atoi(arguments[1])
	if err != nil {
		panic(err)
	}
	return arguments[0], time.Duration(ms) * time.Millisecond, arguments[2]
}

func dialGoZookeeper(arguments []string) (goLocks, error) {
	g := new(goZookeeperLocks)
	g.addr, g.session, g.owner = zkArguments(arguments)
	return g, g.connect()
}

func (g *goZookeeperLocks) connect() error {
	expired, connected := new(atomic.Bool), make(chan struct{}, 1)
	conn, _, err := zk.Connect([]string{g.addr}, g.session, zk.WithLogInfo(false), zk.WithLogger(noLog{}),
		zk.WithEventCallback(func(e zk.Event) {
			switch e.State {
			case zk.StateExpired:
				expired.Store(true)
			case zk.StateHasSession:
				select {
				case connected <- struct{}{}:
				default:
				}
			}
		}))
	if err != nil {
		return err
	}
	g.conn, g.expired = conn, expired
	select {
	case <-connected:
		return nil
	case <-time.After(patience):
		return errors.New("never: a session")
	}
}

// acquire starts over after any error: a Lock that fails leaves its node behind.
func (g *goZookeeperLocks) acquire(path string) (int64, uint64, error) {
	if g.lock != nil || g.expired.Load() {
		g.lock = nil
		g.conn.Close()
		if err := g.connect(); err != nil {
			return 0, 0, err
		}
	}
	g.lock = zk.NewLock(g.conn, path, zk.WorldACL(zk.PermAll))
	if err := g.lock.LockWithData([]byte(g.owner)); err != nil {
		return 0, 0, err
	}
	at := history.Now()
	// Nothing else identifies its node.
	node := reflect.ValueOf(g.lock).Elem().FieldByName("lockPath").String()
	found, stat, err := g.conn.Exists(node)
	switch {
	case err != nil:
		return 0, 0, err
	case !found:
		return 0, 0, errors.New("the node is gone")
	}
	return at, uint64(stat.Czxid), nil
}

func (g *goZookeeperLocks) live() error {
	if g.expired.Load() {
		return zk.ErrSessionExpired
	}
	return nil
}

func (g *goZookeeperLocks) release() error {
	err := g.lock.Unlock()
	if err == nil {
		g.lock = nil
	}
	return err
}

func (g *goZookeeperLocks) close() { g.conn.Close() }
