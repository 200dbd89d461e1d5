package zkserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// FourLetter sends one of ZooKeeper's four-letter words to the server at addr and returns all of its answer. It blocks until
// the server has closed the connection or ctx ends, five seconds at most.
func FourLetter(ctx context.Context, addr, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answer, err := fourLetter(ctx, addr, word)
	if err != nil {
		return answer, fmt.Errorf("zookeeper %s: %q: %w", addr, word, errors.Join(err, ctx.Err()))
	}
	return answer, nil
}

func fourLetter(ctx context.Context, addr, word string) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	b, err := io.ReadAll(conn)
	return string(b), err
}

// Mode asks the server at addr for its role: "standalone", "leader", "follower" or "observer". A server that listens but does
// not serve, for lack of a quorum, is an error.
func Mode(ctx context.Context, addr string) (string, error) {
	answer, err := FourLetter(ctx, addr, "srvr")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(answer) {
		if mode, ok := strings.CutPrefix(line, "Mode: "); ok {
			return strings.TrimSpace(mode), nil
		}
	}
	return "", fmt.Errorf("zookeeper %s: not serving: %.100q", addr, answer)
}

// Watches returns the sessions that watch each path at this server ("wchp"). Paths without a watch are absent.
func Watches(ctx context.Context, addr string) (map[string][]int64, error) {
	answer, err := FourLetter(ctx, addr, "wchp")
	if err != nil {
		return nil, err
	}
	return parseWatches(answer)
}

// WatchesBySession returns the paths that each session watches at this server ("wchc").
func WatchesBySession(ctx context.Context, addr string) (map[int64][]string, error) {
	byPath, err := Watches(ctx, addr)
	if err != nil {
		return nil, err
	}
	m := make(map[int64][]string)
	for path, sessions := range byPath {
		for _, id := range sessions {
			m[id] = append(m[id], path)
		}
	}
	return m, nil
}

func parseWatches(answer string) (map[string][]int64, error) {
	m := make(map[string][]int64)
	var path string
	for line := range strings.Lines(answer) {
		line = strings.TrimRight(line, "\r\n")
		switch id, indented := strings.CutPrefix(line, "\t"); {
		case line == "":
		case !indented:
			path = line
		default:
			session, err := parseSession(id)
			if err != nil {
				return nil, fmt.Errorf("wchp: line %q: %w", line, err)
			}
			m[path] = append(m[path], session)
		}
	}
	return m, nil
}

// Connection is one client connection as the server shows it ("cons").
type Connection struct {
	Remote  string // host:port of the client
	Session int64  // 0: none yet, as for the connection that asks
	// Fields are the server's own words: queued, recved, sent, sid, lop, est, to, lcxid, lzxid, lresp, llat, minlat, avglat, maxlat.
	Fields map[string]string
}

var consLine = regexp.MustCompile(`^\s*/([^\[]+)\[\d+\]\((.*)\)\s*$`)

// Connections lists the client connections of the server at addr.
func Connections(ctx context.Context, addr string) ([]Connection, error) {
	answer, err := FourLetter(ctx, addr, "cons")
	if err != nil {
		return nil, err
	}
	return parseConnections(answer)
}

func parseConnections(answer string) ([]Connection, error) {
	var out []Connection
	for line := range strings.Lines(answer) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		parts := consLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if parts == nil {
			return nil, fmt.Errorf("cons: unknown line %q", line)
		}
		c := Connection{Remote: parts[1], Fields: make(map[string]string)}
		for field := range strings.SplitSeq(parts[2], ",") {
			name, value, _ := strings.Cut(field, "=")
			c.Fields[name] = value
		}
		if sid := c.Fields["sid"]; sid != "" {
			session, err := parseSession(sid)
			if err != nil {
				return nil, fmt.Errorf("cons: line %q: %w", line, err)
			}
			c.Session = session
		}
		out = append(out, c)
	}
	return out, nil
}

// Metrics returns the server's counters and gauges ("mntr"), such as zk_packets_sent or zk_approximate_data_size. Values that
// are not numbers are left out.
func Metrics(ctx context.Context, addr string) (map[string]float64, error) {
	answer, err := FourLetter(ctx, addr, "mntr")
	if err != nil {
		return nil, err
	}
	m := make(map[string]float64)
	for line := range strings.Lines(answer) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			m[name] = v
		}
	}
	if len(m) == 0 {
		return nil, fmt.Errorf("zookeeper %s: mntr has no numbers: %.100q", addr, answer)
	}
	return m, nil
}

// Sessions lists the sessions and ephemeral nodes that the server knows ("dump"). Only a leader or a standalone server knows
// all live sessions; every server knows all ephemeral nodes.
type Sessions struct {
	Live       []int64
	Ephemerals map[int64][]string
}

var sessionID = regexp.MustCompile(`^\s*(0x[0-9a-fA-F]+)`)

// Dump asks the server at addr for its sessions.
func Dump(ctx context.Context, addr string) (Sessions, error) {
	answer, err := FourLetter(ctx, addr, "dump")
	if err != nil {
		return Sessions{}, err
	}
	return parseDump(answer)
}

func parseDump(answer string) (Sessions, error) {
	s := Sessions{Ephemerals: make(map[int64][]string)}
	live := make(map[int64]bool)
	inEphemerals := false
	var owner int64
	for line := range strings.Lines(answer) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "ephemeral nodes dump") {
			inEphemerals = true
			continue
		}
		// What follows is about connections and their timeouts.
		if inEphemerals && strings.HasPrefix(line, "Connections") {
			break
		}
		if id := sessionID.FindStringSubmatch(line); id != nil {
			session, err := parseSession(id[1])
			if err != nil {
				return s, fmt.Errorf("dump: line %q: %w", line, err)
			}
			// A leader lists a session in more than one section.
			if !inEphemerals && !live[session] {
				live[session] = true
				s.Live = append(s.Live, session)
			}
			owner = session
			continue
		}
		if path := strings.TrimSpace(line); inEphemerals && strings.HasPrefix(path, "/") {
			s.Ephemerals[owner] = append(s.Ephemerals[owner], path)
		}
	}
	if !inEphemerals {
		return s, fmt.Errorf("dump: not understood: %.100q", answer)
	}
	return s, nil
}

// parseSession reads a session id as ZooKeeper prints it: 64 bits in hexadecimal, of which the highest may be set.
func parseSession(s string) (int64, error) {
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(s), "0x"), 16, 64)
	return int64(v), err
}
