// Chaos lets client processes compete for locks on real servers while a seeded nemesis injects faults. It records the calls of the
// clients, and checks the history against the guarantees of a lock:
//
//	make chaos
//	make chaos MINUTES=30 ENGINE=zookeeper SEED=42
//
// The same seed gives the same schedule of faults; their exact effect on the clients depends on the machine. The exit status
// is 1 if anything is wrong. Then the history and the clients' logs are kept, and their path is printed.
//
// # Simulation
//
// A run takes place in a world (world.go): this machine, or a simulation, which is the same run in virtual time without servers, files or
// child processes. The simulation is a test, since only tests have virtual time (package testing/synctest):
//
//	make sim
//	make sim ENGINE=dynamodb HOURS=24 SEED=42
//
// Its stages are fakes of the engines, which other tests compare with servers. A minute of it replaces hours on servers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// flags are the options of the command line.
type flags struct {
	settings
	engines []string
	out     string
}

func main() {
	strict.On()
	if config, ok := os.LookupEnv(clientVariable); ok {
		os.Exit(beClient(config))
	}
	f, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := f.run(ctx, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "\nchaos: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// parse reads the command line, and prints its errors.
func parse(args []string, w io.Writer) (*flags, error) {
	f := &flags{settings: settings{Clients: 6, Workers: 2, Keys: 6}}
	set := flag.NewFlagSet("chaos", flag.ContinueOnError)
	set.SetOutput(w)
	engine := set.String("engine", "all", "the `engine`: "+strings.Join(engineNames(), ", ")+" or all of them in turn")
	minutes := set.Float64("minutes", 1, "how long the clients run, on each engine")
	set.Uint64Var(&f.Seed, "seed", 0, "the `seed` of the plan (default: a new one each time)")
	set.Func("kinds", "faults that may happen, such as 'link turned, break' (default: all)", func(text string) error {
		for name := range strings.SplitSeq(text, ",") {
			f.Kinds = append(f.Kinds, nemesis.Kind(strings.TrimSpace(name)))
		}
		return nil
	})
	set.StringVar(&f.out, "out", "", "the `directory` for kept files (default: a new temporary one)")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	f.Length = time.Duration(*minutes * float64(time.Minute))
	seeded := false
	set.Visit(func(fl *flag.Flag) { seeded = seeded || fl.Name == "seed" })
	if !seeded {
		f.Seed = rand.Uint64N(1e9) // short enough to be typed
	}
	f.engines = []string{*engine}
	if *engine == "all" {
		f.engines = engineNames()
	}
	var err error
	switch {
	case set.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	case !slices.Contains(engineNames(), f.engines[0]):
		err = fmt.Errorf("-engine %q: want %s or all", *engine, strings.Join(engineNames(), ", "))
	case f.Length <= 0:
		err = fmt.Errorf("-minutes %v: want more than 0", *minutes)
	}
	if err != nil {
		fmt.Fprintf(w, "chaos: %v\n", err)
		return nil, err
	}
	return f, nil
}

// run performs a run on each engine. It returns the error of the first that failed.
func (f *flags) run(ctx context.Context, w io.Writer) error {
	var errs []error
	for _, engine := range f.engines {
		s := f.settings
		s.Engine = engine
		fmt.Fprintf(w, "%s, seed %d: %v\n", engine, s.Seed, s.Length)
		errs = append(errs, f.runOne(ctx, s, w))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (f *flags) runOne(ctx context.Context, s settings, w io.Writer) (err error) {
	if s.Dir, err = makeDir(f.out, s); err != nil {
		return err
	}
	v, err := play(ctx, s)
	if err == nil {
		err = errors.Join(v.write(w), v.err())
	} else {
		err = fmt.Errorf("%s, seed %d: %w", s.Engine, s.Seed, err)
	}
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, os.RemoveAll(s.Dir))
	}
	_, told := fmt.Fprintf(w, "kept       %s\n", s.Dir)
	return errors.Join(err, told)
}

// makeDir makes the directory of a run.
func makeDir(parent string, s settings) (string, error) {
	if parent == "" {
		return os.MkdirTemp("", "holdfast-chaos-"+s.Engine+"-")
	}
	dir := filepath.Join(parent, fmt.Sprintf("%s-%d", s.Engine, s.Seed))
	return dir, os.MkdirAll(dir, 0o755)
}
