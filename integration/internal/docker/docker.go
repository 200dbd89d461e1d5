// Package docker runs servers in containers.
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
	"os/exec"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

// Answers returns nil if a Docker daemon answers. It asks once.
var Answers = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := exec.CommandContext(ctx, "docker", "version").Run(); err != nil {
		return fmt.Errorf("no Docker daemon answers (\"make test-containers\" starts one of its own when run as root): docker version: %w", err)
	}
	return nil
})

// Prefer starts a server in a container if a Docker daemon answers. If not, or if the daemon can neither find nor pull the image, it starts
// another one.
func Prefer[T any](ctx context.Context, container, other func(context.Context) (T, error)) (T, error) {
	var err error
	if Answers() == nil {
		t, failed := container(ctx)
		if failed == nil || ctx.Err() != nil {
			return t, failed
		}
		err = failed
	}
	t, failed := other(ctx)
	if failed != nil {
		return t, errors.Join(err, failed)
	}
	return t, nil
}

// startPatience bounds a start, which may have to pull the image.
const startPatience = 5 * time.Minute

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
	if err := Answers(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	image = cmp.Or(os.Getenv(variable), image)
	running := &Container{}
	serves := wait.ForNop(func(ctx context.Context, target wait.StrategyTarget) error {
		for {
			mapped, err := target.MappedPort(ctx, port)
			if err == nil {
				running.Addr = net.JoinHostPort("127.0.0.1", mapped.Port())
				err = answers(ctx, running.Addr)
			}
			if err == nil || ctx.Err() != nil {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	var err error
	running.c, err = testcontainers.Run(ctx, image, append([]testcontainers.ContainerCustomizer{
		testcontainers.WithLogger(log.NewNoopLogger()),
		testcontainers.WithExposedPorts(port),
		testcontainers.WithHostConfigModifier(func(hc *container.HostConfig) {
			// By default Docker would publish the port on all interfaces.
			hc.PortBindings = network.PortMap{network.MustParsePort(port): {{HostIP: netip.MustParseAddr("127.0.0.1")}}}
		}),
		testcontainers.WithWaitStrategyAndDeadline(time.Minute, serves),
	}, options...)...)
	if err != nil {
		err = fmt.Errorf("container from %s: %w; its log ends:\n%s", image, err, running.LogTail())
		running.Close()
		return nil, err
	}
	return running, nil
}

// LogTail returns the end of the container's log.
func (c *Container) LogTail() string {
	if c.c == nil {
		return ""
	}
	r, err := c.c.Logs(context.Background())
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
