package zkserver

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/holdfast-go/holdfast/integration/internal/docker"
)

const (
	defaultImage  = "docker.io/library/zookeeper:3.9"
	containerPort = "2181/tcp"
	// A first start may have to pull the image.
	pullPatience = 5 * time.Minute
)

// startContainer starts a server in a container of the local Docker daemon and returns when it serves. (For a daemon on another
// machine, start a server there and set ZOOKEEPER_SERVERS.)
func startContainer(ctx context.Context, cfg Config) (*Target, error) {
	image := os.Getenv("HOLDFAST_ZOOKEEPER_IMAGE")
	if image == "" {
		image = defaultImage
	}
	if err := docker.Answers(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pullPatience)
	defer cancel()
	cfg = cfg.withDefaults(100 * time.Millisecond)
	settings := cfg.settings("/data", "0.0.0.0", 2181)
	c, err := testcontainers.Run(
		ctx, image,
		testcontainers.WithLogger(log.NewNoopLogger()),
		docker.OnLoopback(containerPort),
		// Images start Java in different ways, but every JVM reads this variable.
		testcontainers.WithEnv(map[string]string{"JAVA_TOOL_OPTIONS": strings.Join(cfg.jvmFlags(), " ")}),
		testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader:            strings.NewReader(cfg.render(settings)),
			ContainerFilePath: "/conf/zoo.cfg",
			FileMode:          0o644,
		}),
		testcontainers.WithWaitStrategyAndDeadline(startPatience, docker.WaitFor(containerPort, serves)),
	)
	t := &Target{source: Docker}
	t.tail = func() string { return docker.LogTail(c) }
	t.close = sync.OnceFunc(func() { docker.Remove(c) })
	if err != nil {
		err = fmt.Errorf("zookeeper container from %s: %w; its log ends:\n%s", image, err, t.tail())
		t.close()
		return nil, err
	}
	addr, err := docker.Addr(ctx, c, containerPort)
	if err != nil {
		t.close()
		return nil, fmt.Errorf("zookeeper container from %s: %w", image, err)
	}
	t.addrs = []string{addr}
	return t, nil
}

func serves(ctx context.Context, addr string) error {
	_, err := Mode(ctx, addr)
	return err
}
