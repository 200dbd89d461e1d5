package integration_test

import (
	"regexp"
	"strconv"
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
			p := onTable(db, missingTable(t, db)) // each creates it if it is missing
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
