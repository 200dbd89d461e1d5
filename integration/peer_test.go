package integration_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// Programs that share locks on ZooKeeper. Each is a separate process, so that tests can kill and stop it, and all obey the same orders.
const (
	peerZklock      fleetLanguage = "zklock"
	peerZklockKazoo fleetLanguage = "zklock with KazooNames"
	peerZklockLatch fleetLanguage = "zklock with CuratorLatchNames"
	peerZklockRW    fleetLanguage = "zklock with CuratorRWNames"
	peerCurator     fleetLanguage = "Curator"
	peerGo          fleetLanguage = "go-zookeeper"
	peerKazoo       fleetLanguage = "kazoo"
	peerKazooExtra  fleetLanguage = "kazoo with extra patterns"
	peerRenamed     fleetLanguage = "kazoo renamed" // whose own names are like Curator's, too

	readZklock      fleetLanguage = "zklock's readers"
	readZklockRW    fleetLanguage = "zklock's readers with CuratorRWNames"
	readZklockKazoo fleetLanguage = "zklock's readers with KazooNames"
	readCurator     fleetLanguage = "Curator's readers"
	writeCurator    fleetLanguage = "Curator's writers"
	readKazoo       fleetLanguage = "kazoo's readers"
	writeKazoo      fleetLanguage = "kazoo's writers"

	electZklock      fleetLanguage = "Election"
	electZklockKazoo fleetLanguage = "Election with KazooNames"
	electZklockLatch fleetLanguage = "Election with CuratorLatchNames"
	electSelector    fleetLanguage = "Curator LeaderSelector"
	electLatch       fleetLanguage = "Curator LeaderLatch"
	electKazoo       fleetLanguage = "kazoo Election"
)

// Recipes of our clients.
const (
	sharedRecipe = "WithShared"
	limitRecipe  = "WithLimit:2"
)

// A peerKind is the program of a peer.
type peerKind struct {
	program string // of a peer in Go, or curator or kazoo
	form    string // of its names or locks
	recipe  string // the word with which it acquires a lock, if that is not its own
	reads   bool   // it holds its locks beside others that do
}

var peerKinds = map[fleetLanguage]peerKind{
	fleetGo:   {program: "dynamolock"},
	readGo:    {program: "dynamolock", recipe: sharedRecipe, reads: true},
	fleetNode: {program: "node"},

	peerZklock:      {program: "zklock", form: "curator"},
	peerZklockKazoo: {program: "zklock", form: "kazoo"},
	peerZklockLatch: {program: "zklock", form: "curator-latch"},
	peerZklockRW:    {program: "zklock", form: "curator-rw"},
	peerCurator:     {program: "curator"},
	peerGo:          {program: "go-zookeeper"},
	peerKazoo:       {program: "kazoo", form: "plain"},
	peerKazooExtra:  {program: "kazoo", form: "extra"},
	peerRenamed:     {program: "kazoo", form: "renamed"},

	readZklock:      {program: "zklock", form: "curator", recipe: sharedRecipe, reads: true},
	readZklockRW:    {program: "zklock", form: "curator-rw", recipe: sharedRecipe, reads: true},
	readZklockKazoo: {program: "zklock", form: "kazoo", recipe: sharedRecipe, reads: true},
	readCurator:     {program: "curator", recipe: "InterProcessReadWriteLock.readLock", reads: true},
	writeCurator:    {program: "curator", recipe: "InterProcessReadWriteLock.writeLock"},
	readKazoo:       {program: "kazoo", form: "plain", recipe: "ReadLock", reads: true},
	writeKazoo:      {program: "kazoo", form: "plain", recipe: "WriteLock"},

	electZklock:      {program: "election", form: "curator"},
	electZklockKazoo: {program: "election", form: "kazoo"},
	electZklockLatch: {program: "election", form: "curator-latch"},
	electSelector:    {program: "curator", form: "LeaderSelector"},
	electLatch:       {program: "curator", form: "LeaderLatch"},
	electKazoo:       {program: "kazoo", form: "election"},
}

// reads reports whether a peer holds its locks beside others that do.
func reads(peer fleetLanguage) bool { return peerKinds[peer].reads }

// ours reports whether a peer uses the library: it has no excuse for believing in a lock that is over.
func ours(peer fleetLanguage) bool {
	program := peerKinds[peer].program
	return program == "zklock" || program == "election" || program == "dynamolock"
}

// peerReport is one line of a peer's output: an event, as in a fleet, or the answer to a question.
type peerReport struct {
	fleetReport
	Names []string `json:"names"`
}

// peerFailed is the answer to an order that failed.
const peerFailed = "failed"

// A peer is a process with one program's lock that obeys orders. Each order has one
// answer. The peer also reports, unasked, that it holds or has lost its lock.
type peer struct {
	*fleetProcess
	t       *testing.T
	version string // of the other program, if it has one
	answers chan peerReport
	lost    chan peerReport // latest only
}

// startPeer starts a process by a command line for env, and returns when it is ready. It dies with the test. If it ends by
// itself, the test fails. heard, if not nil, gets all its reports about locks, from one goroutine.
func startPeer(t *testing.T, who fleetLanguage, name string, command []string, heard func(fleetReport)) *peer {
	t.Helper()
	p := &peer{
		fleetProcess: &fleetProcess{name: name, language: who, log: filepath.Join(t.TempDir(), "log"), gone: make(chan struct{})},
		t:            t,
		answers:      make(chan peerReport, 16),
		lost:         make(chan peerReport, 1),
	}
	began := history.Now()
	var err error
	if p.Process, err = child.Start(p.log, true, "env", command...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	go p.listen(heard)
	select {
	case r := <-p.answers:
		if r.What != fleetReady || r.At < began || r.At > history.Now() {
			t.Fatalf("%s, started at %d, begins with %q at %d", who, began, r.What, r.At)
		}
		p.version = r.Note
	case <-time.After(peerStart):
		verdict.Fatalf(t, "%s is not ready; its log is\n%s", who, p.logged())
	}
	return p
}

// peerStart is how long a program may take to start: a JVM on a busy machine is slow.
const peerStart = 2 * time.Minute

// zkPeer starts a peer on ZooKeeper.
func zkPeer(t *testing.T, addr string, who fleetLanguage, name string, session time.Duration, heard func(fleetReport)) *peer {
	t.Helper()
	kind := peerKinds[who]
	arguments := []string{addr, strconv.FormatInt(session.Milliseconds(), 10), name, kind.form}
	switch { // Curator's candidates have a name
	case kind.program == "curator" && kind.form == "":
		arguments = arguments[:2]
	case kind.form == "":
		arguments = arguments[:3]
	}
	var command []string
	switch kind.program {
	case "curator":
		command = append(curatorCommand(t), arguments...)
	case "kazoo":
		command = append(kazooCommand(t), arguments...)
	default:
		command = goPeerCommand(append([]string{kind.program}, arguments...)...)
	}
	return startPeer(t, who, name, command, heard)
}

// listen reads the process's output to its end.
func (p *peer) listen(heard func(fleetReport)) {
	defer close(p.gone)
	defer close(p.answers)
	defer p.Stdout.Close()
	for lines := bufio.NewScanner(p.Stdout); lines.Scan(); {
		var r peerReport
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			if !p.expected.Load() { // a line may break off at the kill
				p.t.Errorf("%s %s said %q", p.language, p.name, lines.Text())
			}
			continue
		}
		if heard != nil {
			heard(r.fleetReport)
		}
		switch r.What {
		case fleetHolding, fleetRenewed:
		case fleetLost:
			select {
			case <-p.lost:
			default:
			}
			p.lost <- r
		default:
			p.answers <- r
		}
	}
	<-p.Done()
	log := p.logged()
	if !p.expected.Load() {
		p.t.Errorf("%s %s: %v; its log ends:\n%s", p.language, p.name, p.Err(), log)
	}
	for _, race := range child.Races(log) {
		p.t.Errorf("%s %s: %s", p.language, p.name, race)
	}
}

// do gives an order.
func (p *peer) do(what string, words ...string) {
	// An error means that it has ended, and listen reports that.
	_, _ = fmt.Fprintln(p.Stdin, strings.Join(append([]string{what}, words...), " "))
}

// says returns the next answer, which must be of a kind.
func (p *peer) says(what string) peerReport {
	p.t.Helper()
	r := receive(p.t, fmt.Sprintf("%s answers %s; its log is\n%s", p.name, what, p.logged()), p.answers)
	if r.What != what {
		verdict.Fatalf(p.t, "%s %s answers %s %q, want %s", p.language, p.name, r.What, r.Note, what)
	}
	return r
}

// acquire makes it acquire a free path.
func (p *peer) acquire(path string) peerReport {
	p.t.Helper()
	p.do("acquire", path)
	return p.says(fleetAcquired)
}

func (p *peer) release() {
	p.t.Helper()
	p.do("release")
	if r := p.says(fleetReleased); r.Note != "" {
		verdict.Fatalf(p.t, "%s: release: %s", p.name, r.Note)
	}
}

// ask returns the names in its answer to a question.
func (p *peer) ask(what, path string) []string {
	p.t.Helper()
	p.do(what, path)
	return p.says(what).Names
}
