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

// shares reports whether a request of this mode shares the key with a node before it.
func shares(mode driver.Mode, x entry) bool { return mode.SharesWith(modeOf(x.name)) }

// strangers returns the nodes of a line that do not share with a request.
func strangers(mode driver.Mode, line []entry) []entry {
	if !mode.Shared {
		return line
	}
	return slices.DeleteFunc(slices.Clone(line), func(x entry) bool { return shares(mode, x) })
}

// blockers returns the nodes that a request waits for, of those before it: all of them, if it is a permit that has to wait.
func blockers(mode driver.Mode, ahead []entry) []entry {
	others := strangers(mode, ahead)
	if mode.Limit > 0 && (len(others) > 0 || len(ahead) >= mode.Limit) {
		return ahead
	}
	return others
}

// tellMode tells the client of a node with another limit that is before the contender's.
func (c *contender) tellMode(ahead []entry) {
	for _, x := range ahead {
		if other := modeOf(x.name); other.Limit != c.req.Mode.Limit {
			c.req.Behind(other)
			return
		}
	}
}

// holders returns the nodes of a line that hold the key, and those that wait: the first holds it, and with it all that share it
// before any other node, up to the limit.
func holders(line []entry) (first, queue []entry) {
	if len(line) == 0 {
		return nil, nil
	}
	mode := modeOf(line[0].name)
	n := slices.IndexFunc(line, func(x entry) bool { return !shares(mode, x) })
	switch {
	case !mode.Shared:
		n = 1
	case n < 0:
		n = len(line)
	}
	if mode.Limit > 0 {
		n = min(n, mode.Limit)
	}
	return line[:n], line[n:]
}

// mayJoin reports whether another request may come to hold the key beside its holders, without any of these going.
func mayJoin(first []entry) bool {
	if len(first) == 0 {
		return true
	}
	mode := modeOf(first[0].name)
	return mode.Shared && (mode.Limit == 0 || len(first) < mode.Limit)
}

// plan is what a waiter watches.
type plan struct {
	nodes  []entry
	until  int  // the wait is over when so many of the watched nodes are left
	enough bool // that is the grant; otherwise the queue is listed then

	chain bool // the only node is watched for a write, too
	queue bool // the list of the queue is watched, and no node
}

// mostCounted is the largest limit of permits that are counted.
const mostCounted = 8

// planFor returns the plan of a request that has to wait behind some nodes. Its line is a part of them, of which fewer than k must be left
// before the request is granted:
//
//	permit, with at least limit permits of that limit right before it    those permits; k is the limit
//	any other request                                                    the nodes that do not share with it; k is 1
//
// A short line is watched as a whole, and its deletions are counted. The deletion that leaves k-1 nodes is the grant if nothing but the
// line is in the way: no other node before a line of permits, and fewer permits than the limit beside a line of other nodes. Otherwise
// the queue is listed then. Of a long line the last k+1 nodes are watched: the first of their deletions has the queue listed.
//
// Where the limit is large, so many watches cost too much. Then only the first waiter of a line watches for departures, by a watch on
// the queue. Every other waiter watches its predecessor, which writes to its node when it is granted the key: see announce.
//
// A writer of Curator's read-write lock may leave a reader in its place, so the queue is listed when that writer goes.
func planFor(mode driver.Mode, ahead []entry, mostCounted int) plan {
	run := 0
	for run < len(ahead) && shares(mode, ahead[len(ahead)-1-run]) {
		run++
	}
	line, k, beside := strangers(mode, ahead), 1, 0
	if mode.Limit > 0 {
		beside = len(ahead) - len(line)
	}
	alone := mode.Limit == 0 || beside < mode.Limit
	if mode.Limit > 0 && run >= mode.Limit {
		line, k, alone = ahead[len(ahead)-run:], mode.Limit, run == len(ahead)
	}
	returns := slices.ContainsFunc(line, func(x entry) bool { return sequence.Downgrades(x.name) })
	switch {
	case k > mostCounted && run == k:
		return plan{queue: true}
	case k > mostCounted:
		return plan{nodes: line[len(line)-1:], chain: true}
	case alone && !returns && len(line) <= max(2*k-1, 2):
		return plan{nodes: line, until: k - 1, enough: true}
	}
	line = line[max(0, len(line)-k-1):]
	return plan{nodes: line, until: len(line) - 1}
}
