package integration_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// exampleTests are the tests of the examples, by name.
var exampleTests = map[string]func(*testing.T, examples){
	"quickstart": quickstartExample,
	"worker":     workerExample,
	"consumer":   consumerExample,
	"leader":     leaderExample,
	"fenced":     fencedExample,
	"guard":      guardExample,
	"transact":   transactExample,
	"sql":        sqlExample,
	"s3":         s3Example,
	"shard":      shardExample,
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

// fencedExample finds its engine through the environment.
func fencedExample(t *testing.T, all examples) {
	const story = `(?s)^alice  holds the lock for 1s, token \d+\n` +
		`alice  sees that the lock is hers.*\n` +
		`bob    holds the lock, token \d+\n.*` +
		`alice  goes on with her write: refused: [^\n]*token \d+ is older than \d+\n` +
		`alice  asks her lock: TTL expired\n` +
		` +the account has bob's balance\n$`
	zookeeper := place{env: []string{"HOLDFAST_ENGINE=zookeeper", "ZOOKEEPER_SERVERS=" + server(t).Addr()}}
	db := dynamoserver.Find(t)
	dynamo := place{env: append(exampleAccess(db), "HOLDFAST_ENGINE=dynamodb", "DYNAMODB_ENDPOINT="+db.Endpoint())}
	if notOurs(db) {
		dynamo.args = []string{"-table", db.Table(t)} // the default table may hold anything
	}
	tests := make(map[string]func(*testing.T))
	for name, place := range map[string]place{
		// The command line outranks the environment.
		"memory":    {args: []string{"-engine", "memory"}, env: []string{"HOLDFAST_ENGINE=zookeeper", "ZOOKEEPER_SERVERS=" + nowhere(t)}},
		"zookeeper": zookeeper,
		"dynamodb":  dynamo,
	} {
		tests[name] = func(t *testing.T) {
			e := all.run(t, "fenced", place.env, place.args...)
			e.ends(0)
			e.told(story)
		}
	}
	together(t, tests)
}

// shardExample has two shards on one server: what counts is that they are two clients.
func shardExample(t *testing.T, all examples) {
	db := dynamoserver.Find(t)
	addr := server(t).Addr()
	tests := make(map[string]func(*testing.T))
	for name, test := range map[string]struct {
		place  place
		shards int
	}{
		"memory":    {place{}, 3},
		"zookeeper": {onZooKeeper(addr + ";" + addr), 2},
		"dynamodb":  {onTable(db, missingTable(t, db)+";"+missingTable(t, db)), 2},
	} {
		tests[name] = func(t *testing.T) {
			e := all.run(t, "shard", test.place.env, test.place.args...)
			e.ends(0)
			e.told(`^` + strings.Repeat(`shard-\d holds \d+ of 60 locks: [^\n]+\n`, test.shards) + `one more shard would get \d+ [^\n]+\n$`)
		}
	}
	together(t, tests)
}

func workerExample(t *testing.T, all examples) {
	together(t, map[string]func(*testing.T){
		"memory": func(t *testing.T) {
			e := all.run(t, "worker", nil, "-term", "300ms")
			for _, worker := range []string{"1", "2", "3", "1"} {
				e.says(`msg=works worker=\S+\.` + worker + ` token=`)
			}
			e.interrupt()
			e.ends(0)
			if got := strings.Count(e.out.String(), "msg=ended"); got != 3 {
				t.Errorf("%d workers have ended, want 3; %s", got, e)
			}
			oneAtATime(t, e)
		},
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

// twoWorkers are two processes that take turns. When one ends, the other goes on, and
// then ends in the middle of its work.
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
	type turn struct {
		token       holdfast.Token
		works, ends time.Time
	}
	var turns []turn
	line := regexp.MustCompile(`(?m)^time=(\S+) level=INFO msg=(works|stops) worker=\S+ token=(\d+)$`)
	for _, w := range workers {
		for _, found := range line.FindAllStringSubmatch(w.out.String(), -1) {
			at, err := time.Parse(time.RFC3339, found[1])
			must(t, err)
			token, err := strconv.ParseInt(found[3], 10, 64)
			must(t, err)
			if found[2] == "works" {
				turns = append(turns, turn{token: holdfast.Token(token), works: at})
				continue
			}
			i := slices.IndexFunc(turns, func(turn turn) bool { return turn.token == holdfast.Token(token) })
			if i < 0 {
				t.Fatalf("stops with token %d, with which it has not worked; %s", token, w)
			}
			turns[i].ends = at
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.token, b.token) })
	for i, turn := range turns {
		if turn.ends.IsZero() {
			t.Errorf("the turn with token %d has no end", turn.token)
		}
		if i == 0 {
			continue
		}
		// A holder learns that its lock is over a margin before others can have the key. On a machine that stood still
		// meanwhile it may say so after the next one.
		before := turns[i-1]
		if over := turn.works.Before(before.ends); over && verdict.Stalled(t) >= verdict.Excuse {
			verdict.Inconclusive(t, "token %d works from %v, token %d until %v", turn.token, turn.works, before.token, before.ends)
		} else if over || turn.token == before.token {
			t.Errorf("token %d works from %v, token %d until %v", turn.token, turn.works, before.token, before.ends)
		}
	}
	if t.Failed() {
		for _, w := range workers {
			t.Log(w)
		}
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
			e.ends(1)
			e.complained(`^this example writes to DynamoDB: give the -endpoint of a server that has transactions`)
			e.told(`^$`)
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
	})
}
