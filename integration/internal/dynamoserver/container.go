package dynamoserver

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/holdfast-go/holdfast/integration/internal/docker"
)

const (
	amazonsImage = "amazon/dynamodb-local"
	defaultImage = "docker.io/" + amazonsImage + ":latest"
	defaultPort  = "8000"
	// A first start may have to pull the image.
	pullPatience = 5 * time.Minute
)

// startContainer starts a server in a container of the local Docker daemon and returns when it serves. (For a daemon on another
// machine, start a server there and set DYNAMODB_ENDPOINT.)
func startContainer(ctx context.Context) (*Target, error) {
	image := os.Getenv("HOLDFAST_DYNAMODB_IMAGE")
	if image == "" {
		image = defaultImage
	}
	if err := docker.Answers(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pullPatience)
	defer cancel()
	port, err := containerPort(ctx, image)
	if err != nil {
		return nil, fmt.Errorf("dynamodb container: %w", err)
	}
	t := &Target{source: Docker, access: anyAccess}
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithLogger(log.NewNoopLogger()),
		docker.OnLoopback(port),
		// As a container's process 1, Node.js would ignore SIGTERM.
		testcontainers.WithHostConfigModifier(func(hc *container.HostConfig) { hc.Init = aws.Bool(true) }),
		testcontainers.WithEnv(map[string]string{"DDB_LOCAL_TELEMETRY": "0"}),
		testcontainers.WithWaitStrategyAndDeadline(startPatience, docker.WaitFor(port, func(ctx context.Context, addr string) error {
			t.endpoint = "http://" + addr
			return serves(ctx, t.Client(noRetry))
		})),
	}
	if strings.Contains(image, amazonsImage) {
		// By default it writes to files.
		options = append(options, testcontainers.WithCmd("-jar", "DynamoDBLocal.jar", "-inMemory", "-sharedDb"))
	}
	c, err := testcontainers.Run(ctx, image, options...)
	t.tail = func() string { return docker.LogTail(c) }
	t.close = sync.OnceFunc(func() { docker.Remove(c) })
	if err != nil {
		err = fmt.Errorf("dynamodb container from %s: %w; its log ends:\n%s", image, err, t.tail())
		t.close()
		return nil, err
	}
	return t, nil
}

func containerPort(ctx context.Context, image string) (string, error) {
	if port := os.Getenv("HOLDFAST_DYNAMODB_PORT"); port != "" {
		return port + "/tcp", nil
	}
	port, err := docker.ExposedPort(ctx, image)
	if port == "" {
		port = defaultPort + "/tcp"
	}
	return port, err
}
