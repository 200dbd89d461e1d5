package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// racePrefix begins the names of the files that the clients' race detectors write.
const racePrefix = "race-"

// ours begins the names of all functions of this project.
const ours = "github.com/holdfast-go/holdfast"

// races returns the data races that client processes have reported, except those between two accesses outside this project:
// go-zookeeper has some on reconnecting, which clients do here all the time.
func races(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, racePrefix+"*"))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for report := range strings.SplitSeq(string(text), "==================") {
			if raceIsOurs(report) {
				found = append(found, fmt.Sprintf("%s:%s", file, report))
			}
		}
	}
	return found, nil
}

// raceIsOurs looks at the first frame of either access that is outside the runtime and the standard library.
func raceIsOurs(report string) bool {
	access := false // inside an access, before its first frame
	lines := bufio.NewScanner(strings.NewReader(report))
	for lines.Scan() {
		line := lines.Text()
		lower := strings.ToLower(line)
		switch {
		case strings.HasPrefix(lower, "read at"), strings.HasPrefix(lower, "write at"), strings.HasPrefix(lower, "previous "),
			strings.HasPrefix(lower, "atomic "):
			access = true
		case strings.HasPrefix(lower, "goroutine "):
			access = false
		case access && strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ") && !isStandard(strings.TrimSpace(line)):
			if strings.HasPrefix(strings.TrimSpace(line), ours) {
				return true
			}
			access = false
		}
	}
	return false
}

// isStandard reports whether a function is of the standard library: its import path has no dot before the first slash.
func isStandard(function string) bool {
	first, rest, found := strings.Cut(function, "/")
	return !found || !strings.Contains(first, ".") || rest == ""
}
