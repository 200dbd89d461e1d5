package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// racePrefix begins the names of the files that the clients' race detectors write.
const racePrefix = "race-"

// access matches the stack of an access in a report of the race detector, up to its first function with an import path that has a dot:
// the first that is not of the standard library.
var access = regexp.MustCompile(`(?mi)^(?:previous )?(?:atomic )?(?:read|write) at .*\n(?:  [^./\n]+[./(].*\n      .*\n)*?  (\w+\.\w+/\S+)`)

// races returns the data races of client processes with an access in this project. go-zookeeper has races of its own on reconnecting,
// which clients do here all the time.
func races(dir string) (found []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, racePrefix+"*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for report := range strings.SplitSeq(string(text), "==================") {
			for _, match := range access.FindAllStringSubmatch(report, -1) {
				if strings.HasPrefix(match[1], "github.com/holdfast-go/holdfast") {
					found = append(found, file+":"+report)
					break
				}
			}
		}
	}
	return found, err
}
