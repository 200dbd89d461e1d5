package main

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	verdicts "github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// TestMain lets this test binary also run as a client process.
func TestMain(m *testing.M) {
	if config, ok := os.LookupEnv(clientVariable); ok {
		os.Exit(beClient(config))
	}
	os.Exit(verdicts.Main(func() int { return dynamoserver.Main(m) }))
}
