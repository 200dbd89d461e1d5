package zkserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"

	"github.com/holdfast-go/holdfast/integration/internal/docker"
)

// startContainer starts a server in a container of the local Docker daemon and returns when it serves. (For a daemon on another
// machine, start a server there and set ZOOKEEPER_SERVERS.)
func startContainer(ctx context.Context, cfg Config) (*Target, error) {
	cfg = cfg.withDefaults(100 * time.Millisecond)
	c, err := docker.Run(
		ctx, "HOLDFAST_ZOOKEEPER_IMAGE", "docker.io/library/zookeeper:3.9", "2181/tcp",
		func(ctx context.Context, addr string) error {
			_, err := Mode(ctx, addr)
			return err
		},
		// Images start Java in different ways, but every JVM reads this variable.
		testcontainers.WithEnv(map[string]string{"JAVA_TOOL_OPTIONS": strings.Join(cfg.jvmFlags(), " ")}),
		testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader:            strings.NewReader(cfg.render(cfg.settings("/data", "0.0.0.0", 2181))),
			ContainerFilePath: "/conf/zoo.cfg",
			FileMode:          0o644,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("zookeeper: %w", err)
	}
	return &Target{source: Docker, addrs: []string{c.Addr}, tail: c.LogTail, close: c.Close}, nil
}
