// Package docker holds what the packages that run servers in containers share.
package docker

import (
	"cmp"
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

const (
	// A first start may have to pull the image.
	pullPatience  = 5 * time.Minute
	startPatience = time.Minute
)

// Container is a server in a container of the local Docker daemon.
type Container struct {
	Addr string // of its port, on loopback
	c    testcontainers.Container
}

// Run starts a container of the image that the environment variable names, or else of the default image. It returns when
// answers, called with the address of the port, returns nil: an open port proves nothing, because Docker's own proxy accepts at
// once. The port is such as "80/tcp".
func Run(
	ctx context.Context, variable, image, port string, answers func(ctx context.Context, addr string) error,
	options ...testcontainers.ContainerCustomizer,
) (*Container, error) {
	if err := Answers(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pullPatience)
	defer cancel()
	image = cmp.Or(os.Getenv(variable), image)
	running := &Container{}
	serves := wait.ForNop(func(ctx context.Context, target wait.StrategyTarget) (err error) {
		running.Addr, err = await(ctx, target, port, answers)
		return err
	})
	var err error
	running.c, err = testcontainers.Run(ctx, image, append([]testcontainers.ContainerCustomizer{
		testcontainers.WithLogger(quiet),
		testcontainers.WithExposedPorts(port),
		testcontainers.WithHostConfigModifier(func(hc *container.HostConfig) {
			// By default Docker would publish it on all interfaces.
			hc.PortBindings = network.PortMap{
				network.MustParsePort(port): {{HostIP: netip.MustParseAddr("127.0.0.1")}},
			}
			// As a container's process 1, Node.js would ignore SIGTERM.
			init := true
			hc.Init = &init
		}),
		testcontainers.WithWaitStrategyAndDeadline(startPatience, serves),
	}, options...)...)
	if err != nil {
		err = fmt.Errorf("container from %s: %w; its log ends:\n%s", image, err, running.LogTail())
		running.Close()
		return nil, err
	}
	return running, nil
}

// await gives up when the container has ended.
func await(
	ctx context.Context, target wait.StrategyTarget, port string, answers func(ctx context.Context, addr string) error,
) (string, error) {
	for {
		var addr string
		p, err := target.MappedPort(ctx, port)
		if err == nil {
			addr = net.JoinHostPort("127.0.0.1", p.Port())
			attempt, cancel := context.WithTimeout(ctx, time.Second)
			err = answers(attempt, addr)
			cancel()
		}
		if err == nil {
			return addr, nil
		}
		if state, stateErr := target.State(ctx); stateErr == nil && !state.Running {
			return "", fmt.Errorf("container has ended with exit code %d", state.ExitCode)
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%w: last answer: %w", ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// LogTail returns the end of the container's log.
func (c *Container) LogTail() string {
	if c.c == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := c.c.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	b, _ := io.ReadAll(r)
	return string(b[max(0, len(b)-4000):])
}

// Close kills and removes the container. It may be called more than once.
func (c *Container) Close() {
	if err := testcontainers.TerminateContainer(c.c, testcontainers.StopTimeout(0)); err != nil {
		fmt.Fprintf(os.Stderr, "docker: container left behind: %v\n", err)
	}
	c.c = nil
}
