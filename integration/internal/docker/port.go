package docker

import (
	"context"
	"fmt"

	"github.com/testcontainers/testcontainers-go"
)

// ExposedPort is the only port that an image exposes, such as "80/tcp". It pulls the image if it is not here. For an image
// that exposes none or several it returns "".
func ExposedPort(ctx context.Context, image string) (string, error) {
	client, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return "", err
	}
	defer client.Close()
	inspected, err := client.ImageInspect(ctx, image)
	if err != nil {
		if err := pull(ctx, image); err != nil {
			return "", fmt.Errorf("pull %s: %w", image, err)
		}
		if inspected, err = client.ImageInspect(ctx, image); err != nil {
			return "", err
		}
	}
	if inspected.Config == nil || len(inspected.Config.ExposedPorts) != 1 {
		return "", nil
	}
	for port := range inspected.Config.ExposedPorts {
		return port, nil
	}
	panic("unreachable")
}

func pull(ctx context.Context, image string) error {
	provider, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(quiet))
	if err != nil {
		return err
	}
	defer provider.Close()
	return provider.PullImage(ctx, image)
}
