package dynamoserver

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/testcontainers/testcontainers-go"

	"github.com/holdfast-go/holdfast/integration/internal/docker"
)

const amazonsImage = "amazon/dynamodb-local"

// startContainer starts a server in a container of the local Docker daemon and returns when it serves. (For a daemon on another
// machine, start a server there and set DYNAMODB_ENDPOINT.)
func startContainer(ctx context.Context) (*Target, error) {
	const variable = "HOLDFAST_DYNAMODB_IMAGE"
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithEnv(map[string]string{"DDB_LOCAL_TELEMETRY": "0"}),
	}
	if strings.Contains(cmp.Or(os.Getenv(variable), amazonsImage), amazonsImage) {
		// By default it writes to files.
		options = append(options, testcontainers.WithCmd("-jar", "DynamoDBLocal.jar", "-inMemory", "-sharedDb"))
	}
	c, err := docker.Run(
		ctx, variable, "docker.io/"+amazonsImage+":latest", cmp.Or(os.Getenv("HOLDFAST_DYNAMODB_PORT"), "8000")+"/tcp",
		func(ctx context.Context, addr string) error { return serves(ctx, At("http://"+addr).Client(noRetry)) },
		options...,
	)
	if err != nil {
		return nil, fmt.Errorf("dynamodb: %w", err)
	}
	t := At("http://" + c.Addr)
	t.source, t.tail, t.close = Docker, c.LogTail, c.Close
	return t, nil
}
