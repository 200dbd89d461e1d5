package dynamoserver

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
)

//go:embed moto_server.py
var motoServer string

// startMoto starts moto's DynamoDB with the Python of HOLDFAST_PYTHON.
func startMoto(ctx context.Context) (*Target, error) {
	python := os.Getenv("HOLDFAST_PYTHON")
	if python == "" {
		python = "python3"
	}
	out, err := exec.CommandContext(ctx, python, "-c", "import moto.server").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("moto: %s: %w: %.1000s\n\"make test-versions\" installs it; else set HOLDFAST_PYTHON to a Python that has moto[dynamodb,server]", python, err, out)
	}
	return startProcess(ctx, Moto, python, "-c", motoServer)
}
