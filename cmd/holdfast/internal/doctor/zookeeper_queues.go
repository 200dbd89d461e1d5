package doctor

import (
	"context"
	"slices"
	"strings"
)

// markers are what stands before the sequence number in the names of those who
// contend for a lock, in every form that holdfast respects (package zklock).
var markers = []string{"lock-", "latch-", "read-", "write-", "__lock__", "__rlock__", "__READ__", "__WRIT__"}

// contends reports whether a name is that of a contender: a marker, and a
// sequence number of ten digits, or past the overflow a sign and nine or ten.
func contends(name string) bool {
	front := strings.TrimRight(name, "0123456789")
	digits := len(name) - len(front)
	if digits == 10 && marked(front) {
		return true
	}
	unsigned, signed := strings.CutSuffix(front, "-")
	return signed && (digits == 9 || digits == 10) && marked(unsigned)
}

func marked(front string) bool {
	return slices.ContainsFunc(markers, func(m string) bool { return strings.HasSuffix(front, m) })
}

// foreign looks for children of locks that do not contend for them.
func (e *ensemble) foreign(ctx context.Context) ([]Finding, error) {
	set, err := e.locks(ctx)
	if refusedByZooKeeper(err) {
		return only(ok(seePermissions))
	}
	if err != nil {
		return nil, err
	}
	var strangers []string
	for _, l := range set {
		for _, name := range l.children {
			if !contends(name) {
				strangers = append(strangers, join(l.path, name))
			}
		}
	}
	if len(strangers) == 0 {
		return only(ok("whatever is in a queue is there to contend"))
	}
	return only(warning(
		"delete or move them: holdfast ignores them, but Curator waits for each to go, and go-zookeeper's Lock fails",
		"%s of no lock recipe in queues: %s", count(len(strangers), "znode"), some(strangers),
	))
}
