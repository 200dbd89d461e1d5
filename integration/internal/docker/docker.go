// Package docker holds what the packages that run servers in containers share.
package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

// ErrNoDaemon: no Docker daemon answers. The text says what to do about it.
var ErrNoDaemon = errors.New("no Docker daemon answers (\"make test-containers\" starts one of its own when run as root)")

var quiet = log.NewNoopLogger()

var health struct {
	once sync.Once
	err  error
}

// Answers returns nil when there is a Docker daemon, else an error that matches [ErrNoDaemon]. The answer is kept:
// testcontainers keeps its own, too.
func Answers(ctx context.Context) error {
	health.once.Do(func() {
		// Later callers use the answer too, even if this one is cancelled.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := ask(ctx); err != nil {
			health.err = fmt.Errorf("%w: %w", ErrNoDaemon, err)
		}
	})
	return health.err
}

func ask(ctx context.Context) (err error) {
	// testcontainers panics if it finds no way to reach a daemon.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("docker: %v", r)
		}
	}()
	provider, err := testcontainers.ProviderDocker.GetProvider(testcontainers.WithLogger(quiet))
	if err != nil {
		return err
	}
	defer provider.Close()
	return provider.Health(ctx)
}

// OnLoopback publishes a port such as "80/tcp" on a free port of 127.0.0.1. By default Docker would publish it on
// all interfaces.
func OnLoopback(port string) testcontainers.CustomizeRequestOption {
	return func(req *testcontainers.GenericContainerRequest) error {
		if err := testcontainers.WithExposedPorts(port)(req); err != nil {
			return err
		}
		return testcontainers.WithHostConfigModifier(func(hc *container.HostConfig) {
			hc.PortBindings = network.PortMap{
				network.MustParsePort(port): {{HostIP: netip.MustParseAddr("127.0.0.1")}},
			}
		})(req)
	}
}

// Addr is the address of a port published by [OnLoopback].
func Addr(ctx context.Context, c wait.StrategyTarget, port string) (string, error) {
	p, err := c.MappedPort(ctx, port)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", p.Port()), nil
}

// WaitFor waits until answers, called with the address of the port, returns nil. An open port proves nothing,
// because Docker's own proxy accepts at once. WaitFor gives up when the container has ended.
func WaitFor(port string, answers func(ctx context.Context, addr string) error) wait.Strategy {
	return wait.ForNop(func(ctx context.Context, target wait.StrategyTarget) error {
		for {
			addr, err := Addr(ctx, target, port)
			if err == nil {
				attempt, cancel := context.WithTimeout(ctx, time.Second)
				err = answers(attempt, addr)
				cancel()
			}
			if err == nil {
				return nil
			}
			if state, stateErr := target.State(ctx); stateErr == nil && !state.Running {
				return fmt.Errorf("container has ended with exit code %d", state.ExitCode)
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%w: last answer: %w", ctx.Err(), err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}

// LogTail returns the end of a container's log. c may be nil.
func LogTail(c testcontainers.Container) string {
	if c == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := c.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	b, _ := io.ReadAll(r)
	return string(b[max(0, len(b)-4000):])
}

// Remove kills and removes a container. c may be nil.
func Remove(c testcontainers.Container) {
	if err := testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0)); err != nil {
		fmt.Fprintf(os.Stderr, "docker: container left behind: %v\n", err)
	}
}
