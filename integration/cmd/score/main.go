// Score removes one prevention of docs/design/hazards.md after the other, measures how long the simulation (make sim) needs to
// find that, and writes it into results.tsv:
//
//	make score
//	make score ONLY='Z5,E9.2' SECONDS_EACH=60 SEED=42
//	go run ./integration/cmd/score -tests -cpu 0
//
// With -suite it repeats the conformance suite of the mutant's engine in virtual time instead of the simulation. With -tests it
// also runs all tests that need no server: the library's own, and the scenes of package integration on the fake. A mutant that
// none of them finds needs a test on real servers. Times are CPU times.
//
// A mutant is found when TestSimulation of integration/cmd/chaos (or TestConformance) fails, or when no run of it ends any more.
// The simulation is random: each row is one sample, and another seed may find the mutant sooner, later or not at all.
//
// The tool changes a copy of the repository, uncommitted files included. First it runs the unchanged code, which must pass.
//
// # Files
//
// mutants_*.go have what is removed; score_test.go checks that the code still has that. results.go reads and writes results.tsv,
// simulate.go repeats the simulation or the suite, tests.go runs the library's tests, and copy.go copies the repository.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// flags are the options of the command line.
type flags struct {
	only     []string // rows, or names that several rows have
	engine   string
	cpu      time.Duration
	baseline time.Duration
	seed     uint64
	suite    bool
	tests    bool
}

func main() {
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
		fmt.Fprintf(os.Stderr, "\nscore: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// parse reads the command line, and prints its errors.
func parse(args []string, w io.Writer) (*flags, error) {
	f := &flags{}
	set := flag.NewFlagSet("score", flag.ContinueOnError)
	set.SetOutput(w)
	set.Func("only", "the `hazards` to score, such as 'Z5,E9.2' (default: all)", func(text string) error {
		for name := range strings.SplitSeq(text, ",") {
			f.only = append(f.only, strings.TrimSpace(name))
		}
		return nil
	})
	set.StringVar(&f.engine, "engine", "", "the `engine` to score: "+strings.Join(simulated, ", ")+" (default: all)")
	set.DurationVar(&f.cpu, "cpu", 5*time.Minute, "the CPU time that a mutant gets in the simulation or the suite; 0 leaves that out")
	set.DurationVar(&f.baseline, "baseline", 4*time.Minute, "the CPU time that the unchanged code gets first, on each engine; 0 leaves that out")
	set.Uint64Var(&f.seed, "seed", 1, "the `seed` of the first run of each")
	set.BoolVar(&f.suite, "suite", false, "run the conformance suite in place of the simulation")
	set.BoolVar(&f.tests, "tests", false, "run the library's tests that need no server, too")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	var err error
	switch {
	case set.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	case f.cpu < 0 || f.baseline < 0:
		err = fmt.Errorf("-cpu %v, -baseline %v: want not less than 0", f.cpu, f.baseline)
	case f.cpu == 0 && !f.tests:
		err = errors.New("-cpu 0 without -tests: there is nothing to do")
	case f.engine != "" && !slices.Contains(simulated, f.engine):
		err = fmt.Errorf("-engine %q: want one of %s", f.engine, strings.Join(simulated, ", "))
	case len(f.chosen()) == 0:
		err = fmt.Errorf("-only %q, -engine %q: there is no such mutant", strings.Join(f.only, ","), f.engine)
	}
	if err != nil {
		fmt.Fprintf(w, "score: %v\n", err)
		return nil, err
	}
	return f, nil
}

// chosen returns the mutants that are to be scored.
func (f *flags) chosen() []mutant {
	return slices.DeleteFunc(mutants(), func(m mutant) bool {
		wanted := len(f.only) == 0 || slices.ContainsFunc(f.only, func(name string) bool { return isOf(m.Hazard, name) })
		return !wanted || f.engine != "" && m.Engine != f.engine
	})
}

// run scores the mutants, and prints a row of each as soon as it is known.
func (f *flags) run(ctx context.Context, w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "holdfast-score-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c := &copied{dir: filepath.Join(dir, "repository"), scratch: filepath.Join(dir, "scratch"), seed: f.seed}
	if err := c.make(ctx); err != nil {
		return fmt.Errorf("copy the repository: %w", err)
	}
	if err := f.unchanged(ctx, w, c); err != nil {
		return err
	}
	all, found, unfound := f.chosen(), 0, 0
	var failed []error
	for _, m := range all {
		r, err := c.score(ctx, &m, f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = f.note(filepath.Join(c.from, resultsFile), &m, r)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s (%s): %w", m.Hazard, m.Name, err))
			continue
		}
		if r.sign != "" {
			found++
		}
		if r.sign == "" && r.test == "" {
			unfound++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.1f s\t%s\t%s\n", m.Hazard, m.Name, m.Engine, r.used.Seconds(),
			cmp.Or(r.sign, "not found"), r.test)
	}
	fmt.Fprintf(w, "\nFound by the %s: %d of %d, by nothing: %d.\n", runOf(f.suite, "").kind, found, len(all), unfound)
	return errors.Join(failed...)
}

// unchanged tries the present code, which must not fail.
func (f *flags) unchanged(ctx context.Context, w io.Writer, c *copied) error {
	if f.tests {
		failed, out, err := c.test(ctx)
		switch {
		case err != nil:
			return err
		case failed != "":
			return fmt.Errorf("%s fails with the present code, so this would say nothing:\n%s", failed, out)
		}
		fmt.Fprintf(w, "The tests pass with the present code.\n")
	}
	if f.cpu == 0 || f.baseline == 0 {
		return nil
	}
	runs := map[string]testRun{} // by engine, or one for all engines that share a package
	for _, m := range f.chosen() {
		run := runOf(f.suite, m.Engine)
		runs[run.name()] = run
	}
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		r, err := c.until(ctx, runs[name], f.baseline)
		switch {
		case err != nil:
			return err
		case r.sign != "":
			return fmt.Errorf("%s: the present code fails after %.1f s, so this would say nothing: %s\n%s",
				name, r.used.Seconds(), r.sign, r.tail)
		}
		fmt.Fprintf(w, "%s: nothing is found in the present code within %.0f s.\n", name, r.used.Seconds())
	}
	fmt.Fprintln(w)
	return nil
}
