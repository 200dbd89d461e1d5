package zkserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
)

// EnsembleSize is the number of servers in an [Ensemble]: the smallest that survives the loss of one.
const EnsembleSize = 3

// Ensemble is three servers that form one ZooKeeper service. Servers are named by their index in [Ensemble.Servers]; in
// ZooKeeper's own terms server i has the id i+1.
//
// Every connection that server i makes to server j runs through fault proxies of that ordered pair. Clients connect to the
// servers directly, so an isolated server can still be reached by its clients.
type Ensemble struct {
	servers []*Server
	links   [EnsembleSize][EnsembleSize]*link // [from][to]
}

// link carries all traffic on connections that one server makes to another.
type link struct {
	quorum, election *faultproxy.Proxy
	master           *faultproxy.Proxy // of an observer to its master, if that is not the leader
}

// each calls f with the proxies that the link has.
func (l *link) each(f func(*faultproxy.Proxy)) {
	for _, p := range []*faultproxy.Proxy{l.quorum, l.election, l.master} {
		if p != nil {
			f(p)
		}
	}
}

// StartEnsemble starts an ensemble and returns when all of its servers serve. A ctx that ends first stops it again. Close it
// after use.
func StartEnsemble(ctx context.Context, cfg Config) (_ *Ensemble, err error) {
	cfg = cfg.withDefaults(200 * time.Millisecond)
	props := map[string]string{
		// The defaults, five seconds and a minute, would make a healed partition last.
		"zookeeper.cnxTimeout":                         "1000",
		"zookeeper.fastleader.maxNotificationInterval": "500",
	}
	maps.Copy(props, cfg.Props)
	cfg.Props = props

	e := &Ensemble{}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	if err := e.layOut(cfg); err != nil {
		return nil, err
	}
	for _, s := range e.servers {
		if err := s.Launch(); err != nil {
			return nil, err
		}
	}
	return e, e.WaitReady(ctx)
}

// layOut makes links and servers, none of them running.
func (e *Ensemble) layOut(cfg Config) error {
	var ports [EnsembleSize][]*child.PortLease // client, quorum, election, and one that is spare or for TLS
	for i := range ports {
		var err error
		if ports[i], err = child.LeasePorts(4); err != nil {
			return err
		}
		// From here on the server owns the ports, whatever happens.
		e.servers = append(e.servers, &Server{ports: ports[i]})
	}
	if err := e.link(ports); err != nil {
		return err
	}
	for i := range e.servers {
		settings := map[string]string{
			"initLimit": strconv.Itoa(cfg.InitLimit),
			"syncLimit": strconv.Itoa(cfg.SyncLimit),
			// Otherwise followers would learn the addresses from the leader, and bypass their own proxies.
			"reconfigEnabled":   "false",
			"standaloneEnabled": "false",
		}
		for j := range e.servers {
			quorum, election := ports[j][1].Port, ports[j][2].Port
			if l := e.links[i][j]; l != nil {
				quorum, election = portOf(l.quorum), portOf(l.election)
			}
			address := fmt.Sprintf("127.0.0.1:%d:%d", quorum, election)
			if cfg.Observer && j == EnsembleSize-1 {
				address += ":observer"
			}
			settings[fmt.Sprintf("server.%d", j+1)] = address
		}
		if err := e.observe(cfg, i, ports[EnsembleSize-1][3].Port, settings); err != nil {
			return err
		}
		files := map[string]string{"data/myid": strconv.Itoa(i+1) + "\n"}
		s, err := newServer(cfg.secured(ports[i], settings, files), ports[i], settings, files, member)
		if err != nil {
			return err
		}
		e.servers[i] = s
		if cfg.TLS != nil {
			s.secure = loopback(ports[i][3].Port)
		}
	}
	return nil
}

// link makes the proxies between the servers.
func (e *Ensemble) link(ports [EnsembleSize][]*child.PortLease) error {
	linked := make(chan struct{})
	defer close(linked)
	for i, j := range pairs() {
		l := &link{}
		e.links[i][j] = l
		var err error
		if l.quorum, err = faultproxy.Start(loopback(ports[j][1].Port)); err != nil {
			return err
		}
		greet := func(in io.Reader) ([]byte, error) {
			<-linked
			return introduce(in, e.links[j][i].election.Addr())
		}
		if l.election, err = faultproxy.StartGreeting(loopback(ports[j][2].Port), greet); err != nil {
			return err
		}
	}
	return nil
}

// pairs yields all ordered pairs of different servers.
func pairs() func(yield func(int, int) bool) {
	return func(yield func(int, int) bool) {
		for i := range EnsembleSize {
			for j := range EnsembleSize {
				if i != j && !yield(i, j) {
					return
				}
			}
		}
	}
}

func portOf(p *faultproxy.Proxy) int {
	_, port, _ := net.SplitHostPort(p.Addr())
	n, _ := strconv.Atoi(port)
	return n
}

// Servers are the ensemble's servers. Each can be stopped, killed, paused and started again separately. [Server.Start]
// returns when that server serves, for which it must reach a quorum; use [Server.Launch] for an isolated server.
func (e *Ensemble) Servers() []*Server { return slices.Clone(e.servers) }

// Addrs are the clients' addresses of all servers.
func (e *Ensemble) Addrs() []string {
	var addrs []string
	for _, s := range e.servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// modes asks every server for its role. A server that does not serve has none.
func (e *Ensemble) modes(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	modes := make([]string, len(e.servers))
	var wg sync.WaitGroup
	for i, s := range e.servers {
		wg.Go(func() { modes[i], _ = Mode(ctx, s.Addr()) })
	}
	wg.Wait()
	return modes
}

// Roles waits until one server leads and all others follow or observe, and returns the indexes of the leader and of the followers. It gives
// up when ctx is done, after a minute at most.
func (e *Ensemble) Roles(ctx context.Context) (leader int, followers []int, err error) {
	err = e.WaitModes(ctx, func(modes []string) bool {
		leader, followers = slices.Index(modes, "leader"), nil
		for i, mode := range modes {
			if mode == "follower" {
				followers = append(followers, i)
			}
		}
		return whole(modes)
	})
	return leader, followers, err
}

// whole reports whether an ensemble with these modes has one leader, and all others follow or observe.
func whole(modes []string) bool {
	modes = slices.Sorted(slices.Values(modes))
	return slices.Equal(modes, []string{"follower", "follower", "leader"}) ||
		slices.Equal(modes, []string{"follower", "leader", "observer"})
}

// WaitReady returns when one server leads and all others follow or observe. It gives up when a process has ended or ctx is done, after a
// minute at most.
func (e *Ensemble) WaitReady(ctx context.Context) error { return e.WaitModes(ctx, whole) }

// WaitModes returns when ok is true of the servers' roles, in the order of Servers; a server that does not serve has the role "". It gives
// up when ctx is done, after a minute at most.
func (e *Ensemble) WaitModes(ctx context.Context, ok func(modes []string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		modes := e.modes(ctx)
		if ok(modes) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("zookeeper ensemble: modes %q: %w\n%s", modes, context.Cause(ctx), e.LogTail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Isolate black-holes all traffic between server i and the others: messages are lost, and no connection is closed. Clients notice nothing
// at first.
func (e *Ensemble) Isolate(i int) {
	for j := range e.servers {
		if j != i {
			e.IsolatePair(i, j)
		}
	}
}

// IsolatePair black-holes the traffic between two servers only.
func (e *Ensemble) IsolatePair(i, j int) {
	for _, l := range []*link{e.links[i][j], e.links[j][i]} {
		l.each(func(p *faultproxy.Proxy) { p.BlackHole(faultproxy.Both) })
	}
}

// HoldBack holds back what server from, the leader, sends to its follower to; HealAll delivers it.
func (e *Ensemble) HoldBack(from, to int) { e.links[to][from].quorum.Stall(faultproxy.ToClient) }

// Turn delivers what HoldBack has held back, and drops all replies from then on.
func (e *Ensemble) Turn(from, to int) { e.links[to][from].quorum.Turn(faultproxy.ToClient) }

// HealAll ends all partitions. Connections that lost bytes are reset, so that the servers make new ones.
func (e *Ensemble) HealAll() error {
	var errs []error
	for i, j := range pairs() {
		if l := e.links[i][j]; l != nil {
			l.each(func(p *faultproxy.Proxy) { errs = append(errs, p.Heal()) })
		}
	}
	return errors.Join(errs...)
}

// LogTail returns the ends of the servers' logs.
func (e *Ensemble) LogTail() string {
	var tails []string
	for _, s := range e.servers {
		tails = append(tails, fmt.Sprintf("log of %s (pid %d) ends:\n%s", s.Addr(), s.PID(), s.LogTail()))
	}
	return strings.Join(tails, "\n")
}

// Close stops all servers and removes their data. It may be called more than once.
func (e *Ensemble) Close() {
	var wg sync.WaitGroup
	for _, s := range e.servers {
		wg.Go(s.Close)
	}
	wg.Wait()
	for i, j := range pairs() {
		if l := e.links[i][j]; l != nil {
			l.each(func(p *faultproxy.Proxy) { _ = p.Close() })
		}
	}
}
