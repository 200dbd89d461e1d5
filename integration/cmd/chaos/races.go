package main

import (
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// races returns the data races of client processes, which their logs have.
func races(dir string) (found []string, err error) {
	logs, err := filepath.Glob(filepath.Join(dir, clientLog("*")))
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			return nil, err
		}
		for _, report := range child.Races(string(text)) {
			found = append(found, log+": "+report)
		}
	}
	return found, err
}

// clientLog is the name of the log of a client process.
func clientLog(process string) string { return "client-" + process + ".log" }
