package integration_test

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/zklock"
)

// electionLocks are our elections in the form of a lock: the leader holds it until the ctx of lead ends.
type electionLocks struct {
	client *zklock.Client
	stop   context.CancelFunc
	leave  chan struct{} // closed to make lead return
	closed chan struct{} // the same, for good
	over   chan error    // what Run has returned
	ctx    context.Context
}

func dialElection(arguments []string) (goLocks, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	addr, session, owner := zkArguments(arguments)
	client, err := zklock.Dial(ctx, []string{addr}, &zklock.Options{SessionTimeout: session, Names: forms[arguments[3]], Owner: owner})
	return &electionLocks{client: client, closed: make(chan struct{})}, err
}

func (l *electionLocks) acquire(path string) (int64, uint64, error) {
	if l.over != nil {
		_ = l.release() // of a lost term
	}
	e, err := l.client.Election(path, nil)
	if err != nil {
		return 0, 0, err
	}
	type elected struct {
		at   int64
		ctx  context.Context
		term *holdfast.Lock
	}
	ctx, stop := context.WithCancel(context.Background())
	terms, over, leave := make(chan elected), make(chan error, 1), make(chan struct{})
	go func() {
		over <- e.Run(ctx, func(ctx context.Context, term *holdfast.Lock) error {
			select {
			case terms <- elected{history.Now(), ctx, term}:
			case <-l.closed:
			}
			select {
			case <-leave:
			case <-l.closed:
			}
			return holdfast.ErrWithdrawn
		})
	}()
	l.stop, l.leave, l.over = stop, leave, over
	select {
	case t := <-terms:
		l.ctx = t.ctx
		return t.at, uint64(t.term.Token()), nil
	case err := <-over:
		stop()
		l.over = nil
		return 0, 0, err
	}
}

func (l *electionLocks) live() error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	return nil
}

func (l *electionLocks) release() error {
	close(l.leave)
	defer l.stop()
	over := l.over
	l.over = nil
	select {
	case err := <-over:
		return err
	case <-time.After(patience):
		return errors.New("never: the end of Run")
	}
}

func (l *electionLocks) close() {
	close(l.closed)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = l.client.Close(ctx)
}
