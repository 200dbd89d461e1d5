package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/job"
)

func main() {
	job.BeGuard()

	// Otherwise SIGPIPE would kill the program at once, with a lock held.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	ctx, leave, cancel := interruptible(context.Background())
	defer cancel()
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, lookupEnv: os.LookupEnv, leaveSignals: leave}
	os.Exit(a.main(ctx, os.Args[1:]))
}

// interrupted is the cause of a ctx that was ended by a signal.
type interrupted struct{ signal syscall.Signal }

func (i interrupted) Error() string { return "interrupted by " + signalName(i.signal) }

// interruptible returns a ctx that ends at the first SIGINT, SIGTERM, SIGHUP or SIGQUIT. From then on signals have their default action,
// so a second signal ends the program at once. After leave, signals no longer end ctx. Ignored signals, as under nohup, stay ignored.
func interruptible(parent context.Context) (ctx context.Context, leave, cancel func()) {
	ctx, end := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	quit, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		select {
		case s := <-signals:
			signal.Stop(signals)
			end(interrupted{s.(syscall.Signal)})
		case <-quit:
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(quit)
		<-left
		select {
		case s := <-signals: // from before leave
			end(interrupted{s.(syscall.Signal)})
		default:
		}
	}), func() { end(nil) }
}

// main runs the program and returns its exit status.
func (a *app) main(ctx context.Context, args []string) int {
	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	defer a.flush()
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if !a.began { // cobra's error
		err = commandLineError(err)
	}
	if isUnread(err) { // a message would not be read either
		return 128 + int(syscall.SIGPIPE)
	}
	if quiet := (*exitError)(nil); !errors.As(err, &quiet) || quiet.err != nil {
		a.complain(ctx, err)
	}
	return exitCode(ctx, err)
}

// isUnread reports whether the reader of the output is gone. The error of a broken connection to the engine matches EPIPE too, but is no
// error of a file.
func isUnread(err error) bool {
	var file *fs.PathError
	return errors.As(err, &file) && file.Op == "write" && errors.Is(file.Err, syscall.EPIPE)
}
