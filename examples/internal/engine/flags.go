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

// kinds are the engines, in the order of the help. A further engine has a row here and a file of its own.
var kinds = []kind{
	{"memory", func(*flag.FlagSet) func() (*Engine, error) { return func() (*Engine, error) { return Memory(), nil } }},
	{"zookeeper", zooKeeperFlags},
	{"dynamodb", dynamoFlags},
}

// A kind is an engine by its name. add declares the flags of the engine, and returns a function that opens it.
type kind struct {
	name string
	add  func(*flag.FlagSet) (open func() (*Engine, error))
}

// Flags choose the engine.
type Flags struct {
	set     *flag.FlagSet
	engine  string
	open    map[string]func() (*Engine, error) // by the name of the engine
	belongs map[string]string                  // the name of the engine, by its flags
}

func names() string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.name)
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// AddFlags declares -engine and the flags of all engines. The environment sets their defaults.
func AddFlags(flags *flag.FlagSet) *Flags {
	f := &Flags{set: flags, open: make(map[string]func() (*Engine, error)), belongs: make(map[string]string)}
	flags.StringVar(&f.engine, "engine", cmp.Or(os.Getenv("HOLDFAST_ENGINE"), "memory"),
		"`name` of the engine: "+names()+"; implied by the flags of one; variable HOLDFAST_ENGINE")
	for _, k := range kinds {
		own := flag.NewFlagSet(k.name, flag.ContinueOnError)
		f.open[k.name] = k.add(own)
		own.VisitAll(func(g *flag.Flag) {
			f.belongs[g.Name] = k.name
			flags.Var(g.Value, g.Name, g.Usage)
		})
	}
	return f
}

// Open returns the chosen engine. It does not connect yet.
func (f *Flags) Open() (*Engine, error) {
	name, err := f.name()
	if err != nil {
		return nil, err
	}
	if open := f.open[name]; open != nil {
		return open()
	}
	return nil, fmt.Errorf("no engine %q: want %s", name, names())
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
		engine, ok := f.belongs[flag]
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
