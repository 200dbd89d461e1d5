// Score removes one prevention of docs/design/hazards.md after the other, measures how long the simulation (make sim) needs to
// find that, and writes it into results.tsv:
//
//	make score
//	make score ONLY='Z5,E9.2' SECONDS_EACH=60 SEED=42
//
// With -suite it repeats the conformance suite of the mutant's engine in virtual time instead of the simulation. Times are CPU times. The
// simulation is random: each row is one sample.
//
// A mutant is a patch in mutants/. Its first lines name the hazard, the engine and the mutant. The tool applies patches with "git
// apply" in a copy of the repository, uncommitted files included. The unchanged code must pass: run make sim first.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// flags are the options of the command line.
type flags struct {
	only, engine string
	cpu          time.Duration
	seed         uint64
	suite        bool
}

func main() {
	var f flags
	flag.StringVar(&f.only, "only", "", "the `hazards` to score, such as 'Z5,E9.2' (default: all)")
	flag.StringVar(&f.engine, "engine", "", "the `engine` to score: "+strings.Join(engines, ", ")+" (default: all)")
	flag.DurationVar(&f.cpu, "cpu", 5*time.Minute, "the CPU time of each mutant")
	flag.Uint64Var(&f.seed, "seed", 1, "the `seed` of the first run of each")
	flag.BoolVar(&f.suite, "suite", false, "run the conformance suite in place of the simulation")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := f.run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "\nscore: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// chosen returns the mutants to score.
func (f *flags) chosen(all []mutant) []mutant {
	return slices.DeleteFunc(slices.Clone(all), func(m mutant) bool {
		row, _, _ := strings.Cut(m.hazard, ".")
		wanted := f.only == "" || slices.ContainsFunc(strings.Split(f.only, ","), func(name string) bool {
			name = strings.TrimSpace(name)
			return name == m.hazard || name == row
		})
		return !wanted || f.engine != "" && m.engine != f.engine
	})
}

// run scores the mutants, and prints and stores each result as soon as it is known: a run of all mutants takes hours.
func (f *flags) run(ctx context.Context) (err error) {
	top, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("git rev-parse: %w", err)
	}
	from := strings.TrimSpace(string(top))
	all, err := mutants(filepath.Join(from, mutantsDir))
	if err != nil {
		return err
	}
	chosen := f.chosen(all)
	if len(chosen) == 0 {
		return fmt.Errorf("-only %q, -engine %q: there is no such mutant", f.only, f.engine)
	}
	dir, err := os.MkdirTemp("", "holdfast-score-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	copying := exec.CommandContext(ctx, "sh", "-c",
		`git ls-files --cached --others --exclude-standard -z | tar --null --ignore-failed-read -T - -c | tar -x -C "$0"`, dir)
	copying.Dir = from
	if out, err := copying.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the repository: %w\n%s", err, out)
	}
	found := 0
	var failed []error
	for _, m := range chosen {
		r, err := f.score(ctx, dir, m)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = f.note(filepath.Join(from, resultsFile), m, r)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s (%s): %w", m.hazard, m.name, err))
			continue
		}
		if r.sign != "" {
			found++
		}
		fmt.Printf("%s\t%s\t%s\t%.1f s\t%s\n", m.hazard, m.name, m.engine, r.used.Seconds(), cmp.Or(r.sign, "not found"))
	}
	fmt.Printf("\nFound: %d of %d.\n", found, len(chosen))
	return errors.Join(failed...)
}

// score applies a mutant, repeats the simulation or the suite on it, and takes it back.
func (f *flags) score(ctx context.Context, dir string, m mutant) (r result, err error) {
	if err := m.apply(dir); err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, m.apply(dir, "--reverse")) }()
	run := testRun{folder: "integration/cmd/chaos", test: "TestSimulation", engine: m.engine, silence: longestRun}
	if f.suite {
		run = testRun{folder: "internal/recordlock", test: "TestConformance", silence: longestCase}
		if m.engine == "zookeeper" {
			run.folder = "zklock"
		}
	}
	return run.until(ctx, dir, f.seed, f.cpu)
}
