package doctor

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/sequence"
)

// contends reports whether a name is that of a contender, in any form that holdfast
// respects.
func contends(name string) bool {
	_, ok := sequence.Of(name)
	return ok
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
