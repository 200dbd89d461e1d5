// Bench compares holdfast's locks on ZooKeeper and DynamoDB with those of other libraries, on servers that it starts, and
// checks them against the project's bars. It is run at the top of the repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) > 1 && os.Args[1] == candidateCommand {
		return candidate(context.Background(), os.Args[2:], os.Stdin, os.Stdout)
	}
	quick := flag.Bool("quick", false, "few and short blocks: shows that it works, not how fast")
	only := flag.String("run", "", "measure only the rows whose `name` matches this regular expression")
	out := flag.String("o", "", "write all measurements to this `file`, as JSON")
	publish := flag.Bool("publish", false, "write the measurements to bench.json in this directory, and redraw the pictures in docs from it")
	draw := flag.Bool("draw", false, "measure nothing; redraw from bench.json")
	flag.Parse()
	want, err := regexp.Compile(*only)
	switch {
	case err != nil:
		return err
	case *draw:
		return report.Draw(".")
	case *publish && (*quick || *only != ""):
		return errors.New("-publish needs a full run: it excludes -quick and -run")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := measureAll(ctx, *quick, want)
	if err != nil {
		return err
	}
	if *out != "" {
		if err := r.Save(*out); err != nil {
			return err
		}
	}
	if *publish {
		return r.Publish(".")
	}
	return nil
}

// measureAll prints the rows as they come.
func measureAll(ctx context.Context, quick bool, want *regexp.Regexp) (*report.Report, error) {
	r := &report.Report{Began: time.Now().UTC().Truncate(time.Second), Machine: report.ThisMachine()}
	s := &servers{scale: &scale{quick: quick}, report: r}
	defer s.close()
	fmt.Printf("%s, %s, load before: %s\nMedians with [their 95%% intervals] and (least to greatest).\n\n", runtime.Version(), r.Machine, r.Machine.LoadBefore)
	for _, row := range rows {
		if !want.MatchString(row.name) {
			continue
		}
		err := row.measure(ctx, s, func(row report.Row) {
			r.Rows = append(r.Rows, row)
			row.Print(os.Stdout)
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.name, err)
		}
	}
	var err error
	if r.Versions, err = s.versions(ctx); err != nil {
		return nil, err
	}
	r.Took, r.Machine.LoadAfter = time.Since(r.Began).Round(time.Second).String(), report.Load()
	fmt.Printf("\ntook %s, load after: %s\n%s\n", r.Took, r.Machine.LoadAfter, r.Setting())
	return r, nil
}
