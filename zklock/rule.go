package zklock

import (
	"slices"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
)

// All requests for a key stand in one queue, and each name tells the mode of its request: exclusive, reader, or permit of a limit. One
// rule serves all modes: a request waits for every earlier request that does not share with it, and a permit waits until fewer than its
// limit are before it.

// modeOf returns the mode of a node in a queue. A node of a form that this client does not know is exclusive.
func modeOf(name string) driver.Mode {
	if limit := sequence.Limit(name); limit > 0 {
		return driver.Mode{Shared: true, Limit: limit}
	}
	return driver.Mode{Shared: sequence.Shared(name)}
}

// strangers returns the nodes of a line that do not share with a request.
func strangers(mode driver.Mode, line []entry) []entry {
	if !mode.Shared {
		return line
	}
	return slices.DeleteFunc(slices.Clone(line), func(x entry) bool { return mode.SharesWith(modeOf(x.name)) })
}

// blockers returns the nodes that a request waits for, of those before it: all of them, if it is a permit that has to wait.
func blockers(mode driver.Mode, ahead []entry) []entry {
	others := strangers(mode, ahead)
	if mode.Limit > 0 && (len(others) > 0 || len(ahead) >= mode.Limit) {
		return ahead
	}
	return others
}

// holders splits a line. The first node holds the key, and with it the nodes right behind that share with it, up to the limit.
func holders(line []entry) (first, queue []entry) {
	if len(line) == 0 {
		return nil, nil
	}
	mode, n := modeOf(line[0].name), 1
	for n < len(line) && mode.SharesWith(modeOf(line[n].name)) && (mode.Limit == 0 || n < mode.Limit) {
		n++
	}
	return line[:n], line[n:]
}
