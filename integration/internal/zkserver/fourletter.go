package zkserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FourLetter sends one of ZooKeeper's four-letter words to the server at addr and returns all of its answer. It blocks until
// the server has closed the connection or ctx ends, five seconds at most.
func FourLetter(ctx context.Context, addr, word string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	defer func() {
		if err != nil {
			err = fmt.Errorf("zookeeper %s: %q: %w", addr, word, errors.Join(err, ctx.Err()))
		}
	}()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
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

var consLine = regexp.MustCompile(`(?m)\[\d+\]\((.*)\)`)

// Connections returns the client connections of the server at addr ("cons"), by the server's names: queued, recved, sent, sid, lop, est,
// to, lcxid, lzxid, lresp, llat, minlat, avglat, maxlat. A connection without a session has no sid.
func Connections(ctx context.Context, addr string) ([]map[string]string, error) {
	answer, err := FourLetter(ctx, addr, "cons")
	if err != nil {
		return nil, err
	}
	var out []map[string]string
	for _, parts := range consLine.FindAllStringSubmatch(answer, -1) {
		c := make(map[string]string)
		for field := range strings.SplitSeq(parts[1], ",") {
			name, value, _ := strings.Cut(field, "=")
			c[name] = value
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

var sessionLine = regexp.MustCompile(`(?m)^\s*(0x[0-9a-fA-F]{1,16})`)

// Dump asks the server at addr for its sessions.
func Dump(ctx context.Context, addr string) (Sessions, error) {
	s := Sessions{Ephemerals: make(map[int64][]string)}
	answer, err := FourLetter(ctx, addr, "dump")
	if err != nil {
		return s, err
	}
	sessions, nodes, ok := strings.Cut(answer, "\nephemeral nodes dump")
	if !ok {
		return s, fmt.Errorf("dump: not understood: %.100q", answer)
	}
	for _, id := range sessionLine.FindAllStringSubmatch(sessions, -1) {
		// A leader lists a session in more than one section.
		if session, _ := parseSession(id[1]); !slices.Contains(s.Live, session) {
			s.Live = append(s.Live, session)
		}
	}
	// The rest is about connections and their timeouts.
	nodes, _, _ = strings.Cut(nodes, "\nConnections")
	var owner int64
	for line := range strings.Lines(nodes) {
		if id := sessionLine.FindStringSubmatch(line); id != nil {
			owner, _ = parseSession(id[1])
		} else if path := strings.TrimSpace(line); strings.HasPrefix(path, "/") {
			s.Ephemerals[owner] = append(s.Ephemerals[owner], path)
		}
	}
	return s, nil
}

// parseSession reads a session id as ZooKeeper prints it: 64 bits in hexadecimal, of which the highest may be set.
func parseSession(s string) (int64, error) {
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(s), "0x"), 16, 64)
	return int64(v), err
}

// versionLine matches a version without its suffix, such as "-SNAPSHOT".
var versionLine = regexp.MustCompile(`^Zookeeper version: (\d+\.\d+\.\d+)`)

// Version asks the server at addr for its ZooKeeper version, such as "3.9.5".
func Version(ctx context.Context, addr string) (string, error) {
	answer, err := FourLetter(ctx, addr, "srvr")
	if err != nil {
		return "", err
	}
	version := versionLine.FindStringSubmatch(answer)
	if version == nil {
		return "", fmt.Errorf("zookeeper %s: no version in %.100q", addr, answer)
	}
	return version[1], nil
}

// Before reports whether a version is older than major.minor.
func Before(version string, major, minor int) bool {
	var x, y int
	_, err := fmt.Sscanf(version, "%d.%d", &x, &y)
	return err == nil && (x < major || x == major && y < minor)
}
