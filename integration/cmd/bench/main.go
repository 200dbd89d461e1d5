// Bench measures holdfast's locks on ZooKeeper against those of go-zookeeper,
// on a server that it starts, and holds them to the bars of the project.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/pprof"
	"time"
)

// rows are measured in this order; each emits one line or more.
var rows = []struct {
	name    string
	measure func(ctx context.Context, e *env, emit func(result)) error
}{
	{"uncontended", uncontended},
	{"fresh", freshKeys},
	{"parallel", parallel},
	{"handoff", handoffs},
	{"memory", memory},
	{"traffic", traffic},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	quick := flag.Bool("quick", false, "few and short blocks: does it work, not how fast")
	only := flag.String("run", "", "measure only the rows whose `name` this regular expression matches")
	out := flag.String("o", "", "write everything that was measured to this `file`, as JSON")
	cpu := flag.String("cpuprofile", "", "write a CPU profile to this `file`")
	flag.Parse()
	want, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	began := time.Now()
	fmt.Printf("%s, %d CPUs, load before: %s\n\n", runtime.Version(), runtime.NumCPU(), load())
	e, err := newEnv(ctx, *quick)
	if err != nil {
		return err
	}
	defer e.close()
	if *cpu != "" {
		f, err := os.Create(*cpu)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var results []result
	header(os.Stdout)
	for _, row := range rows {
		if !want.MatchString(row.name) {
			continue
		}
		err := row.measure(ctx, e, func(r result) {
			results = append(results, r)
			r.print(os.Stdout)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
	}
	fmt.Printf("\ntook %v, load after: %s\n", time.Since(began).Round(time.Second), load())
	if *out != "" {
		return save(*out, began, results)
	}
	return nil
}
