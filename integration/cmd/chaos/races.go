package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

// accesses matches the stacks of the two accesses of a report.
var accesses = regexp.MustCompile(`(?mi)^(?:previous )?(?:atomic )?(?:read|write) at .*\n((?: +.*\n)*)`)

// raceIsOurs looks at the first frame of either access that is outside the runtime and the standard library.
func raceIsOurs(report string) bool {
	for _, access := range accesses.FindAllStringSubmatch(report, -1) {
		for line := range strings.Lines(access[1]) {
			function := strings.TrimSpace(line)
			if strings.HasPrefix(line, "      ") || isStandard(function) { // that was the place in a file
				continue
			}
			if strings.HasPrefix(function, ours) {
				return true
			}
			break
		}
	}
	return false
}

// isStandard reports whether a function is of the standard library: its import path has no dot before the first slash.
func isStandard(function string) bool {
	first, rest, found := strings.Cut(function, "/")
	return !found || !strings.Contains(first, ".") || rest == ""
}
