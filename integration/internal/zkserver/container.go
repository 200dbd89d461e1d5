package zkserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

const (
	defaultImage  = "docker.io/library/zookeeper:3.9"
	containerPort = "2181/tcp"
	// A first start may have to pull the image.
	pullPatience = 5 * time.Minute
)

var dockerHealth struct {
	once sync.Once
	err  error
}

// dockerAnswers says whether there is a Docker daemon. The answer is kept: testcontainers keeps its own, too.
func dockerAnswers(ctx context.Context) bool {
	dockerHealth.once.Do(func() {
		// The answer is for later callers too, whatever becomes of this one.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		dockerHealth.err = askDocker(ctx)
	})
	return dockerHealth.err == nil
}

func askDocker(ctx context.Context) (err error) {
	// testcontainers panics where it finds no way at all to reach a daemon.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("docker: %v", r)
		}
	}()
	provider, err := testcontainers.ProviderDocker.GetProvider(testcontainers.WithLogger(log.NewNoopLogger()))
	if err != nil {
		return err
	}
	defer provider.Close()
	return provider.Health(ctx)
}

// startContainer starts a server in a container of the local Docker daemon and returns when it serves. (For a daemon on another
// machine, start a server there and set ZOOKEEPER_SERVERS.)
func startContainer(ctx context.Context, cfg Config) (*Target, error) {
	image := os.Getenv("HOLDFAST_ZOOKEEPER_IMAGE")
	if image == "" {
		image = defaultImage
	}
	if !dockerAnswers(ctx) {
		return nil, fmt.Errorf("no Docker daemon answers: %w (\"make test-containers\" starts one of its own when run as root)", dockerHealth.err)
	}
	ctx, cancel := context.WithTimeout(ctx, pullPatience)
	defer cancel()
	cfg = cfg.withDefaults(100 * time.Millisecond)
	settings := cfg.settings("/data", "0.0.0.0", 2181)
	c, err := testcontainers.Run(
		ctx, image,
		testcontainers.WithLogger(log.NewNoopLogger()),
		testcontainers.WithExposedPorts(containerPort),
		testcontainers.WithHostConfigModifier(func(hc *container.HostConfig) {
			// Docker would publish the port on all interfaces of the machine.
			hc.PortBindings = network.PortMap{
				network.MustParsePort(containerPort): {{HostIP: netip.MustParseAddr("127.0.0.1")}},
			}
		}),
		// Images start Java in ways of their own, but every JVM reads this variable.
		testcontainers.WithEnv(map[string]string{"JAVA_TOOL_OPTIONS": strings.Join(cfg.jvmFlags(), " ")}),
		testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader:            strings.NewReader(cfg.render(settings)),
			ContainerFilePath: "/conf/zoo.cfg",
			FileMode:          0o644,
		}),
		testcontainers.WithWaitStrategyAndDeadline(startPatience, wait.ForNop(serves)),
	)
	t := &Target{source: Docker}
	t.tail = func() string { return containerLog(c) }
	t.close = sync.OnceFunc(func() {
		// Nothing in it is worth an orderly end.
		if err := testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0)); err != nil {
			fmt.Fprintf(os.Stderr, "zkserver: container left behind: %v\n", err)
		}
	})
	if err != nil {
		err = fmt.Errorf("zookeeper container from %s: %w; its log ends:\n%s", image, err, t.tail())
		t.close()
		return nil, err
	}
	addr, err := containerAddr(ctx, c)
	if err != nil {
		t.close()
		return nil, fmt.Errorf("zookeeper container from %s: %w", image, err)
	}
	t.addrs = []string{addr}
	return t, nil
}

func containerAddr(ctx context.Context, c wait.StrategyTarget) (string, error) {
	port, err := c.MappedPort(ctx, containerPort)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", port.Port()), nil
}

// serves waits until the server in the container answers. The port alone says nothing: Docker's own proxy accepts at once.
func serves(ctx context.Context, target wait.StrategyTarget) error {
	for {
		addr, err := containerAddr(ctx, target)
		if err == nil {
			attempt, cancel := context.WithTimeout(ctx, time.Second)
			_, err = Mode(attempt, addr)
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
}

func containerLog(c testcontainers.Container) string {
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
