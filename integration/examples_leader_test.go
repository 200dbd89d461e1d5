package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

const leaderKey = "examples/leader"

func leaderExample(t *testing.T, all examples) {
	together(t, map[string]func(*testing.T){
		"zookeeper": func(t *testing.T) {
			addr := server(t).Addr()
			threeCandidates(t, all, onZooKeeper(addr))
			free(t, dial(t, addr, nil).Client, leaderKey)
		},
		"dynamodb": func(t *testing.T) {
			db := dynamoserver.Find(t)
			p := onTable(db, db.Table(t))
			threeCandidates(t, all, p)
			free(t, dialTable(t, p.table).Client, leaderKey)
		},
	})
}

// threeCandidates are processes of which one answers the requests of a fourth. The first
// leader is told to leave, the second is killed. No request is left without an answer.
func threeCandidates(t *testing.T, all examples, p place) {
	t.Helper()
	var candidates []*example
	for range 3 {
		c := all.run(t, "leader", p.env, p.args...)
		c.says(` stands for election, at 127\.0\.0\.1:\d+\n`)
		candidates = append(candidates, c)
	}
	client := all.run(t, "leader", p.env, append([]string{"-client"}, p.args...)...)

	first, name, token := leaderOf(t, candidates, 0)
	client.says(`request 1 is answered by ` + name + `, token ` + token.text() + `,`)
	must(t, first.Signal(syscall.SIGTERM))
	first.ends(0)
	first.says(`stops, token ` + token.text() + `: .+\n(?s:.*) has left\n`)

	second, name, token := leaderOf(t, candidates, token)
	client.says(`is answered by ` + name + `, token ` + token.text() + `,`)
	second.Kill()

	third, name, token := leaderOf(t, candidates, token)
	client.says(`is answered by ` + name + `, token ` + token.text() + `,`)
	third.says(`sees that ` + name + ` leads, at `)
	client.interrupt()
	client.ends(0)
	client.says(`all \d+ requests were answered; the slowest took `)
	third.interrupt()
	third.ends(0)
	third.says(` has left\n`)
}

type termToken holdfast.Token

func (t termToken) text() string { return strconv.FormatUint(uint64(t), 10) }

// leaderOf waits until one of the candidates leads with a token greater than another.
func leaderOf(t *testing.T, candidates []*example, after termToken) (leader *example, name string, token termToken) {
	t.Helper()
	line := regexp.MustCompile(`(candidate-\d+) +leads, token (\d+)\n`)
	becomes(func() bool {
		for _, c := range candidates {
			for _, found := range line.FindAllStringSubmatch(c.out.String(), -1) {
				n, err := strconv.ParseUint(found[2], 10, 64)
				must(t, err)
				if termToken(n) > after {
					leader, name, token = c, found[1], termToken(n)
					return true
				}
			}
		}
		return false
	})
	if leader == nil {
		for _, c := range candidates {
			t.Log(c)
		}
		verdict.Fatalf(t, "none of the candidates leads with a token above %d", after)
	}
	return leader, name, token
}

// metricsExample scrapes the example while one worker holds the lock and one waits.
func metricsExample(t *testing.T, all examples) {
	tests := make(map[string]func(*testing.T))
	for engine, place := range map[string]place{"zookeeper": onZooKeeper(server(t).Addr()), "dynamodb": onDynamoDB(t)} {
		tests[engine] = func(t *testing.T) {
			e := all.run(t, "metrics", place.env, slices.Concat(place.args, []string{"-listen", "127.0.0.1:0", "-workers", "2", "-work", "1h"})...)
			e.says(`url=http`)
			url := regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(e.out.String())[1]
			want := map[string]float64{
				"holdfast_connected":          2,
				"holdfast_held_locks":         1,
				"holdfast_waiting":            1,
				"holdfast_held_seconds_count": 0,
				"holdfast_queue_length_count": 1,
				"holdfast_queue_length_sum":   1,
				`holdfast_acquire_duration_seconds_count{result="granted"}`:        1,
				`holdfast_lost_total{cause="session_expired"}`:                     0,
				`holdfast_heartbeat_duration_seconds_count{result="disconnected"}`: 0,
			}
			if engine == "dynamodb" { // which has no queue
				want["holdfast_queue_length_count"], want["holdfast_queue_length_sum"] = 0, 0
			}
			const beats = `holdfast_heartbeat_duration_seconds_count{result="ok"}`
			var got map[string]float64
			if !becomes(func() bool {
				got = scrape(t, url, engine)
				for name, value := range want {
					if got[name] != value {
						return false
					}
				}
				return got[beats] >= 3
			}) {
				verdict.Fatalf(t, "never: %v and three heartbeats; last was %v", want, got)
			}
			e.interrupt()
			e.ends(0)
		}
	}
	together(t, tests)
}

// scrape returns the sums of each metric over all workers, by its name and its label
// result or cause, if it has one; buckets are left out.
func scrape(t *testing.T, url, engine string) map[string]float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(limited(t), http.MethodGet, url, nil)
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		verdict.Fatalf(t, "%v", err) // the example may have given up waiting for its server
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	values := make(map[string]float64)
	for _, m := range regexp.MustCompile(`(?m)^(holdfast_\w+)\{([^}]*)\} (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		if strings.HasSuffix(m[1], "_bucket") {
			continue
		}
		if !strings.Contains(m[2], fmt.Sprintf("engine=%q", engine)) {
			t.Errorf("not of engine %s: %s", engine, m[0])
		}
		name := m[1]
		if label := regexp.MustCompile(`(result|cause)="\w+"`).FindString(m[2]); label != "" {
			name += "{" + label + "}"
		}
		value, err := strconv.ParseFloat(m[3], 64)
		check(t, err)
		values[name] += value
	}
	return values
}
