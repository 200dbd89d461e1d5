package dynamoserver

import (
	"context"
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/docker"
)

// Source says where a [Target] comes from.
type Source string

// Where Open looks.
const (
	Given    Source = "given"    // DYNAMODB_ENDPOINT, other than AWS
	AWS      Source = "aws"      // DYNAMODB_ENDPOINT
	Docker   Source = "docker"   // a container of our own
	Dynalite Source = "dynalite" // a process of our own, from npm
	Moto     Source = "moto"     // a process of our own, from HOLDFAST_PYTHON
)

// Target is a DynamoDB service to talk to, wherever it runs. Its methods may be called from any goroutine.
type Target struct {
	source   Source
	endpoint string
	access   access
	process  *child.Process
	tail     func() string
	close    func()
}

// Source is where the service was found.
func (t *Target) Source() Source { return t.source }

// Endpoint is its URL.
func (t *Target) Endpoint() string { return t.endpoint }

// Process is the process of a server that Open has started as one, and otherwise nil.
func (t *Target) Process() *child.Process { return t.process }

// LogTail returns the end of the server's log, or "" for a server that Open did not start.
func (t *Target) LogTail() string { return t.tail() }

// Close stops the server if Open has started it. It may be called more than once. On the target of [Find] it does nothing.
func (t *Target) Close() { t.close() }

// At is the service behind a URL, such as a proxy in front of another target, that accepts any credentials. At sends no request.
func At(endpoint string) *Target {
	return &Target{source: Given, endpoint: endpoint, access: anyAccess, tail: func() string { return "" }, close: func() {}}
}

// Open finds or starts a server, and returns when it serves. HOLDFAST_DYNAMODB restricts it to one of "docker", "dynalite" and "moto".
func Open(ctx context.Context) (*Target, error) {
	only := Source(os.Getenv("HOLDFAST_DYNAMODB"))
	endpoint := os.Getenv("DYNAMODB_ENDPOINT")
	switch {
	case only != "" && only != Docker && only != Dynalite && only != Moto:
		return nil, fmt.Errorf("HOLDFAST_DYNAMODB=%q: want docker, dynalite, moto or nothing", only)
	case only == Docker:
		return startContainer(ctx)
	case only == Dynalite:
		return startDynalite(ctx)
	case only == Moto:
		return startMoto(ctx)
	case endpoint != "":
		return openGiven(ctx, endpoint)
	}
	return docker.Prefer(ctx, startContainer, startDynalite)
}

func openGiven(ctx context.Context, endpoint string) (*Target, error) {
	t := At(endpoint)
	if isAWS(endpoint) {
		t.source = AWS
		var err error
		if t.endpoint, t.access, err = awsAccess(ctx, endpoint); err != nil {
			return nil, fmt.Errorf("DYNAMODB_ENDPOINT=%s: %w", endpoint, err)
		}
	}
	if err := serves(ctx, t.Client(noRetry)); err != nil {
		return nil, fmt.Errorf("DYNAMODB_ENDPOINT=%s: %w", endpoint, err)
	}
	return t, nil
}
