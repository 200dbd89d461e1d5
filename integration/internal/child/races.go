package child

import (
	"regexp"
	"strings"
)

// access matches the stack of an access in a report of the race detector, up to its first function with an import path that has a dot:
// the first that is not of the standard library.
var access = regexp.MustCompile(`(?mi)^(?:previous )?(?:atomic )?(?:read|write) at .*\n(?:  [^./\n]+[./(].*\n      .*\n)*?  (\w+\.\w+/\S+)`)

// Races returns the reports of the race detector in a log that show an access by this project. go-zookeeper has races of its own when it
// reconnects.
func Races(log string) (found []string) {
	for report := range strings.SplitSeq(log, "==================") {
		for _, match := range access.FindAllStringSubmatch(report, -1) {
			if strings.HasPrefix(match[1], "github.com/holdfast-go/holdfast") {
				found = append(found, report)
				break
			}
		}
	}
	return found
}
