package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// clientVariable holds the configuration of a client process, and turns this program into one.
const clientVariable = "HOLDFAST_CHAOS_CLIENT"

// beClient is a client in a process of the operating system, which gets its commands from its standard input, one per line,
// and writes its records to its standard output. It returns the exit status. The process ends at once when its standard
// input does, because the run is gone.
func beClient(text string) int {
	var config clientConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", clientVariable, err)
		return 2
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, config.Process+": "+format+"\n", args...)
	}
	fail := func(err error) {
		say("%v", err)
		os.Exit(1)
	}
	c := newClient(context.Background(), config, surroundings{
		now: history.Now, record: (&lines{out: os.Stdout, fail: fail}).write, open: open, say: say, fail: fail,
	})
	go c.listen(os.Stdin)
	if err := c.run(); err != nil {
		say("%v", err)
		return 1
	}
	return 0
}

// listen executes commands.
func (c *client) listen(in io.Reader) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if err := c.obey(lines.Text()); err != nil {
			c.say("%q: %v", lines.Text(), err)
			os.Exit(2)
		}
	}
	os.Exit(3)
}

// lines writes records as JSON. Each record is one unbuffered write, so SIGKILL loses no earlier record.
type lines struct {
	mu   sync.Mutex
	out  io.Writer
	fail func(error)
}

func (l *lines) write(rec history.Record) {
	line, err := json.Marshal(rec)
	if err != nil {
		panic(err) // all its fields can be encoded
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.out.Write(append(line, '\n')); err != nil {
		l.fail(err) // the run is gone
	}
}
