package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

// reach connects to each server by itself.
func (e *ensemble) reach(ctx context.Context) ([]Finding, error) {
	findings := make([]Finding, len(e.servers))
	errs := make([]error, len(e.servers))
	var all sync.WaitGroup
	for i, s := range e.servers {
		all.Go(func() { findings[i], errs[i] = e.reachOne(ctx, s) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil, context.Cause(ctx)
	}
	if reached := e.reached(); len(reached) > 0 {
		e.main = reached[0]
		return findings, nil
	}
	return findings, errEnough
}

// reachOne fails only for settings that make no sense.
func (e *ensemble) reachOne(ctx context.Context, s *server) (Finding, error) {
	began := time.Now()
	conn, err := e.dial(ctx, s.addr)
	if err != nil {
		s.down = true
		cure := "start the server, let this machine through to it, or take it out of --servers"
		if network := (*net.OpError)(nil); e.Options.TLS != nil && !errors.As(err, &network) {
			cure = "see to the server's certificate and the --tls flags"
		}
		return problem(cure, "%s cannot be reached: %v", s.addr, err), nil
	}
	_ = conn.Close()
	connected := time.Since(began)
	options := e.Options
	began = time.Now()
	client, err := zklock.Dial(ctx, []string{s.addr}, &options)
	switch {
	case errors.Is(err, holdfast.ErrInvalid):
		return Finding{}, err
	case errors.Is(err, holdfast.ErrDenied):
		return problem("see to the credentials in HOLDFAST_AUTH or --auth-file", "%s refuses the credentials: %v", s.addr, err), nil
	case err != nil:
		return problem(
			"see whether it has a quorum, whether it speaks TLS as the --tls flags say, and whether maxClientCnxns is reached; its log tells",
			"%s takes the connection, and gives no session within %v", s.addr, e.Timeout,
		), nil
	}
	s.client = client
	return ok("%s: connected in %v, session in %v", s.addr, figure(connected), figure(time.Since(began))), nil
}

// dial connects to a server, by TLS if that is wanted.
func (e *ensemble) dial(ctx context.Context, addr string) (net.Conn, error) {
	if e.Options.TLS != nil {
		return (&tls.Dialer{Config: e.Options.TLS}).DialContext(ctx, "tcp", addr)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

// A status is what the four-letter word srvr tells of a server.
type status struct {
	mode    string // leader, follower, observer or standalone; "": it does not tell
	version string
}

// roles asks each server what it is.
func (e *ensemble) roles(ctx context.Context) ([]Finding, error) {
	var findings []Finding
	alone := 0
	for _, s := range e.servers {
		if s.down {
			continue
		}
		answer, err := e.word(ctx, s.addr, "srvr")
		if err != nil {
			answer = ""
		}
		s.status = parseStatus(answer)
		findings = append(findings, s.describe(answer))
		if s.status.mode == "standalone" {
			alone++
		}
	}
	if alone > 0 && len(e.servers) > 1 {
		findings = append(findings, problem(
			"name the servers of one ensemble in --servers, or the one server alone",
			"%s of the %d that are named are no part of an ensemble: clients of one know nothing of the locks of another", count(alone, "server"), len(e.servers),
		))
	}
	return findings, ctx.Err()
}

// describe says what a server has answered to srvr.
func (s *server) describe(answer string) Finding {
	switch {
	case strings.Contains(answer, "not currently serving"):
		return problem("see why it finds no quorum: its log tells, and whether the servers reach one another", "%s serves nobody", s.addr)
	case s.status.mode == "":
		return ok("%s: not told; allow it with 4lw.commands.whitelist=srvr", s.addr)
	case before(s.status.version, 3, 5):
		return problem("upgrade to 3.5 or newer", "%s: %s, version %s, which has no container znodes", s.addr, s.status.mode, s.status.version)
	}
	return ok("%s: %s, version %s", s.addr, s.status.mode, s.status.version)
}

// word asks a server by one of ZooKeeper's four-letter words.
func (e *ensemble) word(ctx context.Context, addr, word string) (string, error) {
	conn, err := e.dial(ctx, addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	const most = 64 << 10
	text, err := io.ReadAll(io.LimitReader(conn, most))
	return string(text), err
}

func parseStatus(answer string) status {
	var s status
	for line := range strings.Lines(answer) {
		line = strings.TrimSpace(line)
		if mode, found := strings.CutPrefix(line, "Mode: "); found {
			s.mode = mode
		}
		if rest, found := strings.CutPrefix(line, "Zookeeper version: "); found {
			s.version, _, _ = strings.Cut(rest, ",")
			s.version, _, _ = strings.Cut(s.version, "-")
		}
	}
	return s
}

// before reports whether a version is known to be older than major.minor.
func before(version string, major, minor int) bool {
	var have [2]int
	parts := strings.SplitN(version, ".", 3)
	for i := range have {
		n, err := strconv.Atoi(append(parts, "", "")[i])
		if err != nil {
			return false
		}
		have[i] = n
	}
	return have[0] < major || have[0] == major && have[1] < minor
}

// session compares the session timeout with what was asked for.
func (e *ensemble) session(ctx context.Context) ([]Finding, error) {
	asked := e.Options.SessionTimeout
	if asked == 0 {
		asked = zklock.DefaultSessionTimeout
	}
	got := e.main.client.SessionTimeout()
	for _, s := range e.reached() {
		if other := s.client.SessionTimeout(); other != got {
			return only(warning(
				"give all servers the same minSessionTimeout, maxSessionTimeout and tickTime",
				"%s gives sessions of %v, and %s of %v: what a client gets depends on where it is connected", e.main.addr, got, s.addr, other,
			))
		}
	}
	answer, err := e.word(ctx, e.main.addr, "conf")
	if err != nil {
		answer = ""
	}
	return only(judgeSession(asked, got, e.Options.TickTime, parseTick(answer)))
}

// judgeSession judges the session timeout that was negotiated. The tick is 0 if
// the server does not tell.
func judgeSession(asked, got, configured, tick time.Duration) Finding {
	told := fmt.Sprintf("a timeout of %v was asked for, and is what the servers give", asked)
	if asked != got {
		told = fmt.Sprintf("a timeout of %v was asked for, and the servers give %v", asked, got)
	}
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

// parseTick finds the tick in a server's answer to conf.
func parseTick(answer string) time.Duration {
	for line := range strings.Lines(answer) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), "tickTime="); found {
			if ms, err := strconv.Atoi(text); err == nil && ms > 0 {
				return time.Duration(ms) * time.Millisecond
			}
		}
	}
	return 0
}
