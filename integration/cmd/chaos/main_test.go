package main

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

// TestMain makes client processes of this binary, too.
func TestMain(m *testing.M) {
	if config, ok := os.LookupEnv(clientVariable); ok {
		os.Exit(beClient(config))
	}
	os.Exit(dynamoserver.Main(m))
}
