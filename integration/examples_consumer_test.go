package integration_test

import (
	"regexp"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
)

const consumerKey = "examples/consumer/stream-1"

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

// takenOver kills a consumer. Another consumer observes that, and takes over its streams.
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
