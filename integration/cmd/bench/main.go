// Bench compares holdfast's locks with those of other libraries, on servers that it starts. It prints one row of a Markdown table
// for each comparison. It runs at the top of the repository.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("run", "", "measure only the rows whose `name` matches this regular expression")
	pairs := flag.Int("pairs", 40, "measure so many pairs of blocks per row; fewer than 6 show that it works, not how fast")
	path := flag.String("o", "", "write the table to this `file`, too")
	flag.Parse()
	want, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if *pairs < 1 {
		return fmt.Errorf("-pairs %d: want at least 1", *pairs)
	}
	out := io.Writer(os.Stdout)
	if *path != "" {
		file, err := os.Create(*path)
		if err != nil {
			return err
		}
		defer file.Close()
		out = io.MultiWriter(os.Stdout, file)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &bench{began: machine()}
	defer b.close()
	fmt.Fprintln(out, "| where | work | holdfast | other | times its rate [95%] | bar |\n|---|---|---|---|---|---|")
	for _, row := range rows {
		if !want.MatchString(row.name) {
			continue
		}
		line, err := row.measure(ctx, b, *pairs)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		fmt.Fprintln(out, line)
	}
	fmt.Fprintf(out, "\n%s\n", b.setting(*pairs))
	return nil
}
