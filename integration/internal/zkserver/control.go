package zkserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// control reaches into a server's data tree: a line protocol on the standard input and output of our Java program that runs
// the server. The program's source lists the requests.
type control struct {
	server *Server
	turn   chan struct{} // of capacity one; full while a request is unanswered

	// For whoever has the turn.
	proc    *child.Process // the one that answers speaks for
	answers *bufio.Reader
}

// newControlled is newServer for a server that our Java program runs; the arguments give its file name and source. It needs a
// JDK, because each start compiles the program.
func newControlled(cfg Config, ports []*child.PortLease, settings, files map[string]string, name, source string) (*Server, error) {
	files = maps.Clone(files)
	if files == nil {
		files = make(map[string]string)
	}
	files[name] = source
	s, err := newServer(cfg, ports, settings, files, name)
	if err != nil {
		return nil, err
	}
	// Java takes a source file only by its full path: the process does not run in the directory.
	s.args[len(s.args)-2] = filepath.Join(s.dir, name)
	s.control = &control{server: s, turn: make(chan struct{}, 1)}
	return s, nil
}

// request sends the line and waits until the server has carried it out or returned an error. If ctx ends first, the server
// may still carry it out; later requests wait for its answer.
func (c *control) request(ctx context.Context, line string) error {
	if strings.ContainsAny(line, "\r\n") {
		return fmt.Errorf("request %q: line break", line)
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	done := make(chan error, 1)
	go func() {
		done <- c.ask(line)
		<-c.turn
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *control) ask(line string) error {
	p := c.server.running()
	if p == nil {
		return errors.New("not running")
	}
	if p != c.proc {
		c.proc, c.answers = p, bufio.NewReader(p.Stdout)
	}
	if _, err := io.WriteString(p.Stdin, line+"\n"); err != nil {
		return err
	}
	answer, err := c.answers.ReadString('\n')
	if err != nil {
		return err
	}
	if answer = strings.TrimSpace(answer); answer != "ok" {
		return errors.New(answer)
	}
	return nil
}
