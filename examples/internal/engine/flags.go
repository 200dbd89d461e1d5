package engine

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// Flags are those that choose the engine.
type Flags struct {
	set                              *flag.FlagSet
	engine, servers, table, endpoint string
}

// belongs says to which engine a flag belongs.
var belongs = map[string]string{"servers": "zookeeper", "table": "dynamodb", "endpoint": "dynamodb"}

// AddFlags declares -engine, -servers, -table and -endpoint. The environment sets
// their defaults.
func AddFlags(flags *flag.FlagSet) *Flags {
	f := &Flags{set: flags}
	flags.StringVar(&f.engine, "engine", cmp.Or(os.Getenv("HOLDFAST_ENGINE"), "memory"),
		"`name` of the engine: memory, zookeeper or dynamodb; implied by the flags of one; variable HOLDFAST_ENGINE")
	flags.StringVar(&f.servers, "servers", cmp.Or(os.Getenv("ZOOKEEPER_SERVERS"), "127.0.0.1:2181"),
		"ZooKeeper: `addresses` of servers, host:port,host:port; variable ZOOKEEPER_SERVERS")
	flags.StringVar(&f.table, "table", "holdfast",
		"DynamoDB: the `name` of the table, which is created if there is none")
	flags.StringVar(&f.endpoint, "endpoint", os.Getenv("DYNAMODB_ENDPOINT"),
		"DynamoDB: the `URL` of a server, such as http://127.0.0.1:8000; variable DYNAMODB_ENDPOINT\n"+
			"(default: AWS, by the variables AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN)")
	return f
}

// Open returns the chosen engine. It does not connect yet.
func (f *Flags) Open() (*Engine, error) {
	name, err := f.name()
	if err != nil {
		return nil, err
	}
	switch name {
	case "memory":
		return Memory(), nil
	case "zookeeper":
		return ZooKeeper(strings.Split(f.servers, ",")...), nil
	case "dynamodb":
		return DynamoDB(f.table, f.endpoint)
	}
	return nil, fmt.Errorf("no engine %q: there are memory, zookeeper and dynamodb", name)
}

// name returns the engine's name. A flag that would be ignored is an error: the
// user meant another engine.
func (f *Flags) name() (string, error) {
	if f.set.NArg() > 0 {
		return "", fmt.Errorf("%q has no meaning: there are flags only", f.set.Arg(0))
	}
	var given []string
	f.set.Visit(func(g *flag.Flag) { given = append(given, g.Name) })
	name, because := f.engine, "" // from the environment, which the command line overrides
	if slices.Contains(given, "engine") {
		because = "-engine " + f.engine
	}
	for _, flag := range given {
		engine, ok := belongs[flag]
		switch {
		case !ok:
		case because == "":
			name, because = engine, "-"+flag
		case engine != name:
			return "", fmt.Errorf("-%s has no meaning with %s", flag, because)
		}
	}
	return name, nil
}

// Main is the main function of an example: it reads the flags, opens the engine, and
// calls run with a ctx that an interrupt ends.
func Main(run func(ctx context.Context, e *Engine) error) {
	flags := AddFlags(flag.CommandLine)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e, err := flags.Open()
	if err == nil {
		err = run(ctx, e)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
