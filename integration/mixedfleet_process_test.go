package integration_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/npmcache"
)

// fleetConfig is the one argument of a process in either language. Bounds are in
// milliseconds.
type fleetConfig struct {
	Name      string   `json:"name"` // the owner of its locks
	Table     string   `json:"table"`
	Partition string   `json:"partitionKey"`
	Sort      string   `json:"sortKey,omitempty"`
	Keys      []string `json:"keys"`
	Mode      string   `json:"mode"` // the name in both languages: FailOpen, FailClosed
	Trust     bool     `json:"trust"`
	Lease     int      `json:"leaseMs"`
	Heartbeat int      `json:"heartbeatMs"`
	Poll      int      `json:"pollMs"`
	Retries   int      `json:"retries"` // of Node
	Seed      uint64   `json:"seed"`    // of 32 bits
	Hold      [2]int   `json:"holdMs"`  // most holds
	Long      [2]int   `json:"longMs"`  // the others, which need heartbeats
	LongShare float64  `json:"longShare"`
	Pause     [2]int   `json:"pauseMs"`           // between two holds
	Modules   string   `json:"modules,omitempty"` // where Node finds packages
}

// fleetLease is the lease of all items: the minimum that the npm client recommends.
const fleetLease = 5 * time.Second

// options are the settings of our clients.
func (c *fleetConfig) options() *dynamolock.Options {
	o := &dynamolock.Options{
		Table:          c.Table,
		Keys:           dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: c.Partition}, Sort: dynamolock.KeyAttr{Name: c.Sort}},
		Lease:          time.Duration(c.Lease) * time.Millisecond,
		Heartbeat:      time.Duration(c.Heartbeat) * time.Millisecond,
		Poll:           time.Duration(c.Poll) * time.Millisecond,
		TrustLocalTime: c.Trust,
		Owner:          c.Name,
	}
	if c.Mode == dynamolock.FailClosed.String() {
		o.Mode = dynamolock.FailClosed
	}
	return o
}

// dial returns one of our clients, which is closed when the test ends.
func (c fleetConfig) dial(t testing.TB, target *dynamoserver.Target, name string) *dynamolock.Client {
	t.Helper()
	c.Name = name
	client, err := dynamolock.New(limited(t), target.Client(), c.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(limited(t)); err != nil {
			t.Error(err)
		}
	})
	return client
}

// newFleetConfig returns settings with a new table.
func newFleetConfig(t *testing.T, target *dynamoserver.Target, mode dynamolock.Mode, keys ...dynamoserver.Key) fleetConfig {
	t.Helper()
	modules, err := npmcache.Modules(limited(t), npmcache.LockClient...)
	if err != nil {
		t.Fatal(err)
	}
	c := fleetConfig{
		Table:     target.Table(t, keys...),
		Partition: dynamoserver.DefaultKey,
		Mode:      mode.String(),
		Lease:     int(fleetLease.Milliseconds()),
		Heartbeat: 1000,
		Poll:      100,
		Retries:   1,
		Modules:   modules,
	}
	if len(keys) > 0 {
		c.Partition = keys[0].Name
	}
	if len(keys) > 1 {
		c.Sort = keys[1].Name
	}
	return c
}

// A fleetProcess is a child that reports.
type fleetProcess struct {
	*child.Process
	name     string
	language fleetLanguage
	log      string
	expected atomic.Bool   // we ended it
	gone     chan struct{} // closed when the last report was heard
}

// startFleet starts a process; heard gets its reports, from one goroutine. It dies with
// the test. If it ends by itself, the test fails.
func startFleet(t *testing.T, target *dynamoserver.Target, language fleetLanguage, program string, c fleetConfig, heard func(fleetReport)) *fleetProcess {
	t.Helper()
	argument, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	p := &fleetProcess{
		name:     c.Name,
		language: language,
		log:      filepath.Join(t.TempDir(), "log"),
		gone:     make(chan struct{}),
	}
	// env becomes the program, so the process is the program's.
	args := append(target.Env(), "AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE=1")
	if language == fleetNode {
		node, err := npmcache.Node(limited(t))
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, node, filepath.Join("testdata", "mixedfleet", program))
	} else {
		args = append(args, childVariable+"="+program, os.Args[0])
	}
	if p.Process, err = child.Start(p.log, true, "env", append(args, string(argument))...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	go func() {
		defer close(p.gone)
		defer p.Stdout.Close()
		for lines := bufio.NewScanner(p.Stdout); lines.Scan(); {
			var r fleetReport
			if err := json.Unmarshal(lines.Bytes(), &r); err == nil {
				heard(r)
			} else if !p.expected.Load() { // a line may break off at the kill
				t.Errorf("%s %s said %q", language, p.name, lines.Text())
			}
		}
		<-p.Done()
		log := p.logged()
		if !p.expected.Load() {
			t.Errorf("%s %s: %v; its log ends:\n%s", language, p.name, p.Err(), log)
		} else if strings.Contains(log, "DATA RACE") {
			t.Errorf("%s %s: %s", language, p.name, log)
		}
	}()
	return p
}

func (p *fleetProcess) logged() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// kill ends the process as a crash would, and returns when all its reports are in.
func (p *fleetProcess) kill() {
	p.expected.Store(true)
	p.Kill()
	<-p.gone
}

// finish makes the process end in an orderly way.
func (p *fleetProcess) finish(t *testing.T) {
	p.expected.Store(true)
	_ = p.Stdin.Close()
	select {
	case <-p.Done():
		if err := p.Err().Error(); err != "exit status 0" {
			t.Errorf("%s %s: %s; its log ends:\n%s", p.language, p.name, err, p.logged())
		}
	case <-time.After(patience):
		t.Errorf("%s %s goes on without a parent; its log ends:\n%s", p.language, p.name, p.logged())
	}
	p.kill()
}
