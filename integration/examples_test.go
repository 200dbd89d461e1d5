package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
)

// exampleTests are the tests of the examples, by name.
var exampleTests = map[string]func(*testing.T, examples){
	"quickstart": quickstartExample,
	"consumer":   consumerExample,
	"leader":     leaderExample,
	"guard":      guardExample,
	"transact":   transactExample,
	"sql":        sqlExample,
	"s3":         s3Example,
}

// TestExamples runs the examples as users do: built, as separate processes, on every
// engine. Their own tests run them in the test process, without servers.
func TestExamples(t *testing.T) {
	start(t)
	all := buildExamples(t, "./examples/...", "./examples/fencing/...")
	built, err := os.ReadDir(string(all))
	must(t, err)
	for _, program := range built {
		if _, ok := exampleTests[program.Name()]; !ok {
			t.Errorf("example %s has no test here", program.Name())
		}
	}
	tests := map[string]func(*testing.T){"misuse": func(t *testing.T) { misusedExamples(t, all) }}
	for name, test := range exampleTests {
		tests[name] = func(t *testing.T) { test(t, all) }
	}
	together(t, tests)
}

// buildExamples builds programs of the repository. With the race detector, the build cache has their packages. Otherwise
// the build may take a while, and has no limit of its own.
func buildExamples(t *testing.T, packages ...string) examples {
	t.Helper()
	all := examples(t.TempDir())
	build := exec.CommandContext(t.Context(), "go", append([]string{
		"build", "-race=" + strconv.FormatBool(raceEnabled), "-ldflags=-s -w", "-o", string(all) + "/",
	}, packages...)...)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	return all
}

func quickstartExample(t *testing.T, all examples) {
	until := `(?s)^[^\n]*one at a time\n` +
		`.*alice  holds orders/42, token \d+\n` +
		`.*bob    is refused: .*held by "alice"[^\n]*\n` +
		`.*alice  holds orders/42 for half a second, token \d+\n` +
		`.*alice  hears the event "ttl expired": orders/42, token \d+\n` +
		`.*bob    holds orders/42, token \d+\n`
	alone := until + `.*see it in memory[^\n]*\n$`
	until += `.*alice  is cut off [^\n]*\n` +
		`.*alice  knows by herself: [^\n]*lost: (?:session|lease) expired\n` +
		`.*bob    holds orders/42, token \d+\n$`
	tests := make(map[string]func(*testing.T))
	for name, test := range map[string]struct {
		place place
		story string
	}{
		"memory":    {place{}, until},
		"zookeeper": {onZooKeeper(server(t).Addr()), alone},
		"dynamodb":  {onDynamoDB(t), until},
	} {
		tests[name] = func(t *testing.T) {
			args := test.place.args
			if name != "memory" {
				args = append([]string{"-engine", name}, args...)
			}
			e := all.run(t, "quickstart", test.place.env, args...)
			e.ends(0)
			e.told(test.story)
		}
	}
	together(t, tests)
}

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
		"memory": func(t *testing.T) {
			e := all.run(t, "consumer", nil, "-ttl", "4s")
			e.says(`msg=granted `)
			e.says(`msg=disconnected `)
			e.says(`msg="consumed a message" `) // while it is ready again
			e.says(`msg="TTL expired" `)
			e.says(`msg=lost .*expired"\n`)
			e.says(`msg=granted `)
			e.interrupt()
			e.ends(0)
			if got := strings.Count(e.out.String(), "msg=ended"); got != 2 {
				t.Errorf("%d consumers have ended, want 2; %s", got, e)
			}
		},
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

// lateWrite is a pattern for an example's output about a late write and its outcome.
func lateWrite(title, outcome, end string) string {
	return title + `:\nalice  holds the lock, token \d+, sees that it is hers, and is stopped\n` +
		`bob    holds the lock, token \d+\nbob    writes\nalice  goes on` + outcome + `\n` +
		`alice  asks her lock: TTL expired\n +[^\n]*` + end + `\n`
}

const withoutTheLock = ", and writes, without the lock"

func guardExample(t *testing.T, all examples) {
	together(t, map[string]func(*testing.T){
		"zookeeper": func(t *testing.T) {
			e := all.run(t, "guard", nil, onZooKeeper(server(t).Addr()).args...)
			e.ends(0)
			e.told(`^` + lateWrite("no guard", withoutTheLock, "it is 70") +
				lateWrite("a guard", ": refused by ZooKeeper: the lock's node is gone", "it is 150") + `$`)
		},
		"memory": func(t *testing.T) {
			e := all.run(t, "guard", nil)
			e.ends(1)
			e.complained(`^this example writes to ZooKeeper: give its -servers`)
			e.told(`^$`)
		},
	})
}

// sqlExample and s3Example have their locks on each engine. Their own tests check the
// rest.
func sqlExample(t *testing.T, all examples) {
	everywhere(t, all, "sql", `^`+lateWrite("no fence", withoutTheLock, "bob's 50 are gone")+
		lateWrite("the token is compared", ": refused: a newer holder has claimed the row", "her booking is not")+
		`the same, [^\n]*:\n(?s:.*)the row is claimed, (?s:.*)`)
}

func s3Example(t *testing.T, all examples) {
	everywhere(t, all, "s3", `^`+lateWrite("PUT, and no more", withoutTheLock, "the object is alice's")+
		`(?s:.*)`+lateWrite("be stopped, look at the token, PUT with If-Match",
		`: refused: a newer holder has written: token \d+ is older than \d+`, "the object is bob's")+`$`)
}

// everywhere runs an example on each engine.
func everywhere(t *testing.T, all examples, name, story string) {
	t.Helper()
	tests := make(map[string]func(*testing.T))
	for engine, place := range map[string]place{
		"memory": {}, "zookeeper": onZooKeeper(server(t).Addr()), "dynamodb": onDynamoDB(t),
	} {
		tests[engine] = func(t *testing.T) {
			e := all.run(t, name, place.env, place.args...)
			e.ends(0)
			e.told(story)
		}
	}
	together(t, tests)
}

func transactExample(t *testing.T, all examples) {
	unchecked := lateWrite("no check", withoutTheLock, "it is 70")
	story := `^on [^\n]*%s[^\n]*\n` + unchecked +
		lateWrite("a check", ": refused by DynamoDB, ConditionalCheckFailed[^\\n]*", "it is 150") + `$`
	together(t, map[string]func(*testing.T){
		"memory": func(t *testing.T) {
			e := all.run(t, "transact", nil)
			e.ends(0)
			e.told(fmt.Sprintf(story, "in-process fake of DynamoDB"))
		},
		"dynamodb": func(t *testing.T) {
			p := onDynamoDB(t)
			e := all.run(t, "transact", p.env, p.args...)
			if db := dynamoserver.Find(t); !db.Transactions() {
				e.ends(1)
				e.complained(`^this server has no transactions, which this example is about: `)
				e.told(`^on DynamoDB[^\n]*\n` + unchecked + `a check:\nalice  holds[^\n]*\nbob    holds[^\n]*\n$`)
				return
			}
			e.ends(0)
			e.told(fmt.Sprintf(story, p.table))
		},
		"zookeeper": func(t *testing.T) {
			e := all.run(t, "transact", nil, onZooKeeper(server(t).Addr()).args...)
			e.ends(1)
			e.complained(`^transactions of DynamoDB cannot check a lock that ZooKeeper has\n$`)
			e.told(`^$`)
		},
	})
}
