// Bench measures holdfast's locks on ZooKeeper against those of go-zookeeper, and
// those on DynamoDB against those of the npm client dynamodb-lock-client, on
// servers that it starts, and holds them to the bars of the project.
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
	measure measure
}{
	{"uncontended", onZooKeeper(uncontended)},
	{"fresh", onZooKeeper(freshKeys)},
	{"parallel", onZooKeeper(parallel)},
	{"handoff", onZooKeeper(handoffs)},
	{"memory", onZooKeeper(memory)},
	{"traffic", onZooKeeper(traffic)},
	{"dynamodb-calls", onDynamoDB(calls)},
	{"dynamodb-held", onDynamoDB(manyLeases)}, // before the npm row, which leaves much to be collected
	{"dynamodb-line", onDynamoDB(waitingLine)},
	{"dynamodb-notice", onDynamoDB(notice)},
	{"dynamodb-npm", onDynamoDB(againstNPM)},
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
	s := &servers{quick: *quick}
	defer s.close()
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
		err := row.measure(ctx, s, func(r result) {
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
