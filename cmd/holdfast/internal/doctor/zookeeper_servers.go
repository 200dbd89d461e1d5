package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

// reach connects to each server separately.
func (e *ensemble) reach(ctx context.Context) ([]Finding, error) {
	findings := make([]Finding, len(e.servers))
	err := each(len(e.servers), func(i int) (err error) {
		findings[i], err = e.reachOne(ctx, e.servers[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, context.Cause(ctx)
	}
	if reached := e.reached(); len(reached) > 0 {
		e.main = reached[0]
		return findings, nil
	}
	return findings, errEnough
}

// reachOne connects to a server. It fails only if the settings make no sense.
func (e *ensemble) reachOne(ctx context.Context, s *server) (Finding, error) {
	began := time.Now()
	conn, err := s.dial(ctx)
	if err != nil {
		s.down = true
		cure := "start the server, let this machine through to it, or take it out of --servers"
		if network := (*net.OpError)(nil); s.tls != nil && !errors.As(err, &network) {
			cure = "see to the server's certificate, whether it speaks TLS at this port, and the --tls flags"
		}
		return problem(cure, "%s cannot be reached: %v", s.addr, err), nil
	}
	_ = conn.Close()
	connected := time.Since(began)
	began = time.Now()
	client, err := e.dial(ctx, s)
	if err == nil {
		if _, e := client.Inspect(ctx, "holdfast-doctor"); errors.Is(e, holdfast.ErrDenied) && !errors.Is(e, zk.ErrNoAuth) {
			err = e // the server demands authentication
			_ = client.Close(ctx)
		}
	}
	switch {
	case errors.Is(err, holdfast.ErrInvalid):
		return Finding{}, err
	case errors.Is(err, holdfast.ErrDenied):
		return problem("see to the credentials in HOLDFAST_AUTH or --auth-file", "%s refuses the credentials: %v", s.addr, err), nil
	case err != nil && ctx.Err() == nil: // the server has answered
		return problem("see whether --servers has the port for clients, and to the --tls flags", "%s gives no session: %v", s.addr, err), nil
	case err != nil:
		return problem(
			"see whether it has a quorum, whether it speaks TLS as the --tls flags say, and whether maxClientCnxns is reached; its log tells",
			"%s takes the connection, and gives no session within %v", s.addr, e.Timeout,
		), nil
	}
	s.client = client
	return ok("%s: connected in %v, session in %v", s.addr, figure(connected), figure(time.Since(began))), nil
}

// dial connects to a server, over TLS if the settings say so.
func (s *server) dial(ctx context.Context) (net.Conn, error) {
	if s.tls != nil {
		return (&tls.Dialer{Config: s.tls}).DialContext(ctx, "tcp", s.at)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", s.at)
}

// roles asks each server for its role.
func (e *ensemble) roles(ctx context.Context) ([]Finding, error) {
	servers := slices.DeleteFunc(slices.Clone(e.servers), func(s *server) bool { return s.down })
	findings := make([]Finding, len(servers))
	_ = each(len(servers), func(i int) error {
		answer := servers[i].word(ctx, "srvr")
		servers[i].note(answer)
		findings[i] = servers[i].describe(answer)
		return nil
	})
	alone, leader, above := 0, "", ""
	for _, s := range servers {
		switch s.mode {
		case "standalone":
			alone++
		case "leader":
			leader = parseNumber(s.word(ctx, "conf"), "serverId=")
		case "follower":
			if n := parseNumber(s.word(ctx, "mntr"), "zk_synced_observers\t"); n != "" && n != "0" {
				above = s.addr
			}
		}
	}
	for i, s := range servers {
		if s.mode == "observer" && findings[i].Status == OK {
			findings[i] = s.observes(leader, above, parseNumber(s.word(ctx, "mntr"), "zk_observer_master_id\t"))
		}
	}
	if alone > 0 && len(e.servers) > 1 {
		findings = append(findings, problem(
			"name the servers of one ensemble in --servers, or the one server alone",
			"%d of the %d servers that are named stand alone: clients of one know nothing of the locks of another", alone, len(e.servers),
		))
	}
	return findings, nil
}

// describe reports a server's answer to srvr.
func (s *server) describe(answer string) Finding {
	switch {
	case strings.Contains(answer, "not currently serving"):
		return problem("see why it finds no quorum: its log tells, and whether the servers reach one another", "%s serves no clients", s.addr)
	case s.mode == "":
		return skipped("allow it with 4lw.commands.whitelist=srvr", "%s: not told", s.addr)
	case before(s.version, 3, 5):
		return problem("upgrade to 3.5 or newer", "%s: %s, version %s, which has no container znodes", s.addr, s.mode, s.version)
	}
	return ok("%s: %s, version %s", s.addr, s.mode, s.version)
}

// observes reports whether an observer follows the leader. From 3.6 on it may follow a follower instead. leader is the number of the
// leader, master that of the server that the observer follows, and above the address of a follower that has observers. Each is "" if
// unknown.
func (s *server) observes(leader, above, master string) Finding {
	const cure = "clients that hold locks must not use an observer behind an observer master (observerMasterPort): list the other servers"
	switch {
	case above != "":
		return problem(cure, "%s: observer, version %s, and %s, a follower, has observers: behind it, a holder may learn too late that its lock is lost",
			s.addr, s.version, above)
	case before(s.version, 3, 6), leader != "" && master == leader:
		return ok("%s: observer of the leader, version %s", s.addr, s.version)
	case leader == "" || master == "":
		return warning(cure+"; to have it told, allow conf and mntr with 4lw.commands.whitelist, and name the leader too",
			"%s: observer, version %s, which does not tell whether it follows the leader: behind another server, a holder may learn too late that its lock is lost",
			s.addr, s.version)
	}
	return problem(cure, "%s: observer, version %s, behind server %s, which is not the leader: a holder may learn too late that its lock is lost",
		s.addr, s.version, master)
}

// after finds the line of an answer that begins with a name, and returns its rest.
func after(name, answer string) string {
	for line := range strings.Lines(answer) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), name); found {
			return rest
		}
	}
	return ""
}

// parseNumber is after for natural numbers. It returns "" if there is none.
func parseNumber(answer, name string) string {
	rest := after(name, answer)
	if _, err := strconv.ParseUint(rest, 10, 64); err != nil {
		return ""
	}
	return rest
}

// word sends one of ZooKeeper's four-letter words, and returns the part of the answer that comes in time.
func (s *server) word(ctx context.Context, word string) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // a healthy server answers at once
	defer cancel()
	conn, err := s.dial(ctx)
	if err != nil {
		return ""
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(conn, 64<<10))
	return string(text)
}

// note records a server's answer to srvr.
func (s *server) note(answer string) {
	s.mode = after("Mode: ", answer)
	version, _, _ := strings.Cut(after("Zookeeper version: ", answer), ",")
	s.version, _, _ = strings.Cut(version, "-")
}

// before reports whether a version is known to be older than major.minor.
func before(version string, major, minor int) bool {
	var have [2]int
	if n, _ := fmt.Sscanf(version, "%d.%d", &have[0], &have[1]); n < 2 {
		return false
	}
	return slices.Compare(have[:], []int{major, minor}) < 0
}

// session compares the session timeout with the requested one.
func (e *ensemble) session(ctx context.Context) ([]Finding, error) {
	asked := cmp.Or(e.Options.SessionTimeout, zklock.DefaultSessionTimeout)
	got := e.main.client.SessionTimeout()
	for _, s := range e.reached() {
		if other := s.client.SessionTimeout(); other != got {
			return only(warning(
				"give all servers the same minSessionTimeout, maxSessionTimeout and tickTime",
				"%s gives sessions of %v, and %s of %v: a client's session timeout depends on its server", e.main.addr, got, s.addr, other,
			))
		}
	}
	tick, _ := strconv.Atoi(parseNumber(e.main.word(ctx, "conf"), "tickTime=")) // in milliseconds
	return only(judgeSession(asked, got, e.Options.TickTime, time.Duration(tick)*time.Millisecond))
}

// judgeSession judges the negotiated session timeout. The tick is 0 if unknown.
func judgeSession(asked, got, configured, tick time.Duration) Finding {
	told := fmt.Sprintf("a timeout of %v was asked for, and the servers give %v", asked, got)
	if tick > 0 {
		told += fmt.Sprintf(" (%.3g ticks of %v)", float64(got)/float64(tick), tick)
	}
	switch {
	case tick > 0 && got < 2*tick && configured < tick:
		return problem(fmt.Sprintf("give --tick-time %v, or a --lease well above %v", tick, 2*tick),
			"%s: with less than two ticks, a holder that was cut off may learn of its session's end too late", told)
	case asked != got:
		return warning(fmt.Sprintf("give --lease %v, or change minSessionTimeout or maxSessionTimeout of the servers", got), "%s", told)
	case tick > 0 && got <= 2*tick:
		return warning(fmt.Sprintf("give a --lease well above %v", 2*tick), "%s: at two ticks, the leader's pings must be exactly on time", told)
	}
	return ok("%s", told)
}
