package integration_test

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

func workerExample(t *testing.T, all examples) {
	together(t, map[string]func(*testing.T){
		"zookeeper": func(t *testing.T) {
			addr := server(t).Addr()
			twoWorkers(t, all, onZooKeeper(addr))
			free(t, dial(t, addr, nil).Client, workerKey)
		},
		"dynamodb": func(t *testing.T) {
			db := dynamoserver.Find(t)
			p := onTable(db, missingTable(t, db)) // each creates it if it is missing
			twoWorkers(t, all, p)
			free(t, dialTable(t, p.table).Client, workerKey)
		},
	})
}

const (
	workerKey   = "examples/worker"
	consumerKey = "examples/consumer/stream-1"
)

// twoWorkers are two processes that take turns. When one ends, the other goes on, and then ends in the middle of its work.
func twoWorkers(t *testing.T, all examples, p place) {
	t.Helper()
	args := append([]string{"-term", "500ms"}, p.args...)
	one, two := all.run(t, "worker", p.env, args...), all.run(t, "worker", p.env, args...)
	for range 2 {
		one.says(`msg=works `)
		two.says(`msg=works `)
	}
	one.interrupt()
	one.ends(0)
	one.says(`msg=ended `)
	two.forget()
	two.says(`msg=works `)
	two.interrupt()
	two.ends(0)
	two.says(`msg=ended `)
	oneAtATime(t, one, two)
}

// oneAtATime fails the test if two turns overlap, or if a worker has not stopped.
func oneAtATime(t *testing.T, workers ...*example) {
	t.Helper()
	type turn struct{ works, ends time.Time }
	turns := make(map[uint64]turn)
	line := regexp.MustCompile(`(?m)^time=(\S+) level=INFO msg=(works|stops) worker=\S+ token=(\d+)$`)
	for _, w := range workers {
		for _, found := range line.FindAllStringSubmatch(w.out.String(), -1) {
			at, err := time.Parse(time.RFC3339, found[1])
			must(t, err)
			token, err := strconv.ParseUint(found[3], 10, 64)
			must(t, err)
			now := turns[token]
			if found[2] == "works" && now.works.IsZero() {
				turns[token] = turn{works: at}
			} else if now.ends.IsZero() && found[2] == "stops" {
				turns[token] = turn{now.works, at}
			} else {
				t.Errorf("token %d %s again; %s", token, found[2], w)
			}
		}
	}
	var last time.Time
	for _, token := range slices.Sorted(maps.Keys(turns)) {
		// A holder learns that its lock is over a margin before others can have the key. On a machine that stood still
		// meanwhile it may say so after the next one.
		if over := turns[token].works.Before(last); over && verdict.Stalled(t) >= verdict.Excuse {
			verdict.Inconclusive(t, "token %d works from %v, the one before until %v", token, turns[token].works, last)
		} else if over || turns[token].works.IsZero() || turns[token].ends.IsZero() {
			t.Errorf("token %d works from %v until %v, the one before until %v; %v", token, turns[token].works, turns[token].ends, last, workers)
		}
		last = turns[token].ends
	}
}

// free fails the test if a key is held by a process that has ended.
func free(t *testing.T, looker *holdfast.Client, key string) {
	t.Helper()
	if info, err := looker.Inspect(limited(t), key); err != nil || info.Held {
		t.Errorf("%s after the end of its holders: held by %q, %v", key, info.Owner, err)
	}
}

func consumerExample(t *testing.T, all examples) {
	together(t, map[string]func(*testing.T){
		"zookeeper": func(t *testing.T) {
			addr := server(t).Addr()
			p := proxy(t, addr)
			var session credentials
			p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
				session.see(f)
				return faultproxy.Pass
			})
			e := all.run(t, "consumer", nil, append(onZooKeeper(p.Addr()).args, "-ttl", "1h")...)
			e.says(`msg=granted `)
			e.says(`msg="consumed a message" `)
			p.RefuseNew()
			p.Drop()
			e.says(`msg=disconnected `)
			session.expire(t, addr)
			must(t, p.Heal())
			e.says(`msg=lost .*session expired"\n`)
			e.says(`msg=granted `)
			e.says(`msg="consumed a message" `)
			e.interrupt()
			e.ends(0)
			e.says(`msg=ended `)
			free(t, dial(t, addr, nil).Client, consumerKey)
		},
		"dynamodb": func(t *testing.T) {
			p := onDynamoDB(t)
			e := all.run(t, "consumer", p.env, append(p.args, "-trouble", "-ttl", "1h")...)
			e.says(`msg=granted `)
			e.says(`msg=disconnected `)
			e.says(`msg=ready `)
			e.says(`msg="consumed a message" `)
			operator := dialTable(t, p.table)
			// On a busy machine the first outage can already cost the lock. Then the second one
			// may hide a break: only a holder that is connected is told of it.
			broken := regexp.MustCompile(`msg=lost .*broken by somebody else"\n`)
			becomes(func() bool {
				if held, err := operator.Inspect(limited(t), consumerKey); err == nil && held.Held {
					_ = operator.BreakNow(limited(t), held)
				}
				return broken.MatchString(e.out.String()[e.heard:])
			})
			e.says(broken.String())
			e.says(`msg=granted `)
			e.interrupt()
			e.ends(0)
			e.says(`msg=ended `)
			free(t, operator.Client, consumerKey)
		},
		"killed": func(t *testing.T) { takenOver(t, all, onDynamoDB(t)) },
	})
}

// takenOver kills a consumer. Another, which has observed it, goes on with its streams.
func takenOver(t *testing.T, all examples, p place) {
	t.Helper()
	args := append([]string{"-ttl", "1h"}, p.args...)
	one := all.run(t, "consumer", p.env, args...)
	for range 3 {
		one.says(`msg=granted `)
	}
	two := all.run(t, "consumer", p.env, args...)
	two.says(`msg=ready `)
	one.Kill()
	for range 3 {
		two.says(`msg=granted consumer=\S+ stream=\S+ token=\d+ from=consumer-\d+\.1\n`)
	}
	two.says(`msg="consumed a message" `)
	two.interrupt()
	two.ends(0)
}
