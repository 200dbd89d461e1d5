package integration_test

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

// An exampleRun is an example that runs to its end by itself.
type exampleRun struct {
	place
	status   int
	story    string // a pattern of all that it prints
	complain string // a pattern of its one line of standard error
}

// TestExamples runs the examples as users do: built, as separate processes, on real servers. Their own tests run them in
// memory, in the test process.
func TestExamples(t *testing.T) {
	start(t)
	all := buildExamples(t, "./examples/...", "./examples/fencing/...")
	built, err := os.ReadDir(string(all))
	must(t, err)
	stories := exampleRuns(t)
	tests := map[string]func(*testing.T){
		"misuse":   func(t *testing.T) { misusedExamples(t, all) },
		"consumer": func(t *testing.T) { consumerExample(t, all) }, "leader": func(t *testing.T) { leaderExample(t, all) },
	}
	for program, runs := range stories {
		tests[program] = func(t *testing.T) {
			runExamples := make(map[string]func(*testing.T))
			for engine, run := range runs {
				runExamples[engine] = func(t *testing.T) {
					e := all.run(t, program, run.env, run.args...)
					e.ends(run.status)
					e.told(run.story)
					if run.complain != "" {
						e.complained(run.complain)
					}
				}
			}
			together(t, runExamples)
		}
	}
	for _, program := range built {
		if tests[program.Name()] == nil {
			t.Errorf("example %s has no test here", program.Name())
		}
	}
	together(t, tests)
}

// lateWrite is a pattern for an example's output about a late write and its outcome.
func lateWrite(title, outcome, end string) string {
	return title + `:\nalice  holds the lock, token \d+, sees that it is hers, and is stopped\n` +
		`bob    holds the lock, token \d+\nbob    writes\nalice  goes on` + outcome + `\n` +
		`alice  asks her lock: TTL expired\n +[^\n]*` + end + `\n`
}

// exampleRuns are the examples that run to their end, by program and engine.
func exampleRuns(t *testing.T) map[string]map[string]exampleRun {
	const withoutTheLock = ", and writes, without the lock"
	db, addr := dynamoserver.Find(t), server(t).Addr()
	everywhere := func(story string) map[string]exampleRun {
		return map[string]exampleRun{"zookeeper": {place: onZooKeeper(addr), story: story}, "dynamodb": {place: onDynamoDB(t), story: story}}
	}
	alone := `(?s)^[^\n]*one at a time\n` +
		`.*alice  holds orders/42, token \d+\n` +
		`.*bob    is refused: .*held by "alice"[^\n]*\n` +
		`.*alice  holds orders/42 for half a second, token \d+\n` +
		`.*alice  hears the event "ttl expired": orders/42, token \d+\n` +
		`.*bob    holds orders/42, token \d+\n`
	quickstart := everywhere(alone)
	quickstart["zookeeper"] = exampleRun{place: onZooKeeper(addr), story: alone + `.*see it in memory[^\n]*\n$`}
	quickstart["dynamodb"] = exampleRun{place: onDynamoDB(t), story: alone + `.*alice  is cut off [^\n]*\n` +
		`.*alice  knows by herself: [^\n]*lost: (?:session|lease) expired\n` + `.*bob    holds orders/42, token \d+\n$`}

	unchecked := lateWrite("no check", withoutTheLock, "it is 70")
	transact := exampleRun{place: onDynamoDB(t)}
	transact.story = `^on [^\n]*` + transact.table + `[^\n]*\n` + unchecked +
		lateWrite("a check", ": refused by DynamoDB, ConditionalCheckFailed[^\\n]*", "it is 150") + `$`
	if !db.Transactions() {
		transact.status, transact.complain = 1, `^this server has no transactions, which this example is about: `
		transact.story = `^on DynamoDB[^\n]*\n` + unchecked + `a check:\nalice  holds[^\n]*\nbob    holds[^\n]*\n$`
	}
	return map[string]map[string]exampleRun{
		"quickstart": quickstart,
		"guard": {"zookeeper": {place: onZooKeeper(addr), story: `^` + lateWrite("no guard", withoutTheLock, "it is 70") +
			lateWrite("a guard", ": refused by ZooKeeper: the lock's node is gone", "it is 150") + `$`}},
		"transact": {"dynamodb": transact},
		"sql": everywhere(`^` + lateWrite("no fence", withoutTheLock, "bob's 50 are gone") +
			lateWrite("a claim in each transaction", `: [^\n]*refuses token \d+: a later holder [^\n]*`, "her booking is not") + `$`),
		"s3": everywhere(`^` + lateWrite("no fence", withoutTheLock, "the object is alice's") +
			lateWrite("the token in the object", `: [^\n]*refuses token \d+: a later holder [^\n]*`, "the object is bob's") + `$`),
	}
}

// misusedExamples end with one line that explains why.
func misusedExamples(t *testing.T, all examples) {
	absent := nowhere(t)
	for _, test := range []struct{ program, args, says string }{
		{"consumer", "-trouble -servers " + server(t).Addr(), `^-trouble cannot cut off a client of ZooKeeper`},
		{"guard", "-engine memory", `^this example writes to ZooKeeper: give its -servers`},
		{"transact", "-servers " + absent, `^this example writes to DynamoDB: give the -endpoint of a server that has transactions`},
		{"consumer", "-servers " + absent, `^zklock: dial: [^\n]*` + absent},
		{"consumer", "-endpoint http://" + absent, `^dynamolock: [^\n]*` + absent},
	} {
		e := all.run(t, test.program, nil, strings.Fields(test.args)...)
		e.ends(1)
		e.complained(test.says)
		e.told(`^$`)
	}
}
