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
	all := buildExamples(t, "./examples/...", "./examples/fencing/...", "./examples/metrics")
	built, err := os.ReadDir(string(all))
	must(t, err)
	stories := exampleRuns(t)
	tests := map[string]func(*testing.T){
		"misuse": func(t *testing.T) { misusedExamples(t, all) },
		"worker": func(t *testing.T) { workerExample(t, all) }, "consumer": func(t *testing.T) { consumerExample(t, all) },
		"leader": func(t *testing.T) { leaderExample(t, all) }, "metrics": func(t *testing.T) { metricsExample(t, all) },
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

	// It finds its engine through the environment, which the command line outranks.
	fenced := everywhere(`(?s)^alice  holds the lock for 1s, token \d+\n` +
		`alice  sees that the lock is hers.*\n` +
		`bob    holds the lock, token \d+\n.*` +
		`alice  goes on with her write: refused: [^\n]*token \d+ is older than \d+\n` +
		`alice  asks her lock: TTL expired\n` +
		` +the account has bob's balance\n$`)
	for engine, place := range map[string]place{
		"zookeeper": {env: []string{"HOLDFAST_ENGINE=zookeeper", "ZOOKEEPER_SERVERS=" + addr}},
		"dynamodb": {
			env:  append(exampleAccess(db), "HOLDFAST_ENGINE=dynamodb", "DYNAMODB_ENDPOINT="+db.Endpoint()),
			args: []string{"-table", db.Table(t)},
		},
		"memory": {args: []string{"-engine", "memory"}, env: []string{"HOLDFAST_ENGINE=zookeeper", "ZOOKEEPER_SERVERS=" + nowhere(t)}},
	} {
		fenced[engine] = exampleRun{place: place, story: fenced["zookeeper"].story}
	}

	// Two shards on one server: what counts is that they are two clients.
	shard := everywhere(`^(shard-\d holds \d+ of 60 locks: [^\n]+\n){2}one more shard would get \d+ [^\n]+\n$`)
	shard["zookeeper"] = exampleRun{place: onZooKeeper(addr + ";" + addr), story: shard["zookeeper"].story}
	shard["dynamodb"] = exampleRun{place: onTable(db, missingTable(t, db)+";"+missingTable(t, db)), story: shard["zookeeper"].story}

	unchecked := lateWrite("no check", withoutTheLock, "it is 70")
	transact := exampleRun{place: onDynamoDB(t)}
	transact.story = `^on [^\n]*` + transact.table + `[^\n]*\n` + unchecked +
		lateWrite("a check", ": refused by DynamoDB, ConditionalCheckFailed[^\\n]*", "it is 150") + `$`
	if !db.Transactions() {
		transact.status, transact.complain = 1, `^this server has no transactions, which this example is about: `
		transact.story = `^on DynamoDB[^\n]*\n` + unchecked + `a check:\nalice  holds[^\n]*\nbob    holds[^\n]*\n$`
	}
	return map[string]map[string]exampleRun{
		"quickstart": quickstart, "fenced": fenced, "shard": shard,
		"guard": {"zookeeper": {place: onZooKeeper(addr), story: `^` + lateWrite("no guard", withoutTheLock, "it is 70") +
			lateWrite("a guard", ": refused by ZooKeeper: the lock's node is gone", "it is 150") + `$`}},
		"transact": {"dynamodb": transact},
		"sql": everywhere(`^` + lateWrite("no fence", withoutTheLock, "bob's 50 are gone") +
			lateWrite("the token is compared", ": refused: a newer holder has claimed the row", "her booking is not") +
			`the same, [^\n]*:\n(?s:.*)the row is claimed, (?s:.*)`),
		"s3": everywhere(`^` + lateWrite("PUT, and no more", withoutTheLock, "the object is alice's") +
			`(?s:.*)` + lateWrite("be stopped, look at the token, PUT with If-Match",
			`: refused: a newer holder has written: token \d+ is older than \d+`, "the object is bob's") + `$`),
	}
}

// misusedExamples end with one line that explains why.
func misusedExamples(t *testing.T, all examples) {
	absent := nowhere(t)
	for _, test := range []struct{ program, args, says string }{
		{"shard", "-servers a:1 -endpoint http://a:1", `^-servers has no meaning with -endpoint\n$`},
		{"fenced", "-engine paper", `^no engine "paper": there are memory, zookeeper and dynamodb\n$`},
		{"consumer", "-trouble -servers " + server(t).Addr(), `^-trouble cannot cut off a client of ZooKeeper`},
		{"guard", "-engine memory", `^this example writes to ZooKeeper: give its -servers`},
		{"transact", "-servers " + absent, `^transactions of DynamoDB cannot check a lock that ZooKeeper has\n$`},
		// Several workers report one failure together.
		{"worker", "-workers 3 -servers " + absent, `^zklock: dial: [^\n]*` + absent},
		{"consumer", "-endpoint http://" + absent, `^dynamolock: [^\n]*` + absent},
	} {
		e := all.run(t, test.program, nil, strings.Fields(test.args)...)
		e.ends(1)
		e.complained(test.says)
		e.told(`^$`)
	}
}
