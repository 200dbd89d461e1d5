package zkfake

import (
	"maps"
	"strings"
)

// watches are the watches of the clients of one member: WatchManager. Each fires once.
type watches struct {
	data     map[string]map[*conn]struct{} // also of znodes that do not exist
	children map[string]map[*conn]struct{}
}

func newWatches() *watches {
	return &watches{data: make(map[string]map[*conn]struct{}), children: make(map[string]map[*conn]struct{})}
}

// fire sends an event to its watchers: DataTree.processTxn. A client that watches a deleted znode in both ways gets one event.
// A secret uses up the watches, too.
func (w *watches) fire(e event, secret bool) {
	told := make(map[*conn]struct{})
	tell := func(watching map[string]map[*conn]struct{}) {
		maps.Copy(told, watching[e.path])
		delete(watching, e.path)
	}
	if e.what != eventChildren {
		tell(w.data)
	}
	if e.what == eventChildren || e.what == eventDeleted {
		tell(w.children)
	}
	if secret {
		return
	}
	for c := range told {
		c.tell(e)
	}
}

// forget removes all watches of a connection.
func (w *watches) forget(c *conn) {
	for _, watching := range []map[string]map[*conn]struct{}{w.data, w.children} {
		for path := range watching {
			remove(watching, path, c)
		}
	}
}

// Watches returns the sessions that watch a znode, or one below it, at any member, by the znode.
func (e *Ensemble) Watches(path string) map[string][]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := make(map[string][]int64)
	for _, m := range e.members {
		for _, watching := range []map[string]map[*conn]struct{}{m.watches.data, m.watches.children} {
			for watched, conns := range watching {
				if watched != path && !strings.HasPrefix(watched, path+"/") {
					continue
				}
				for c := range conns {
					found[watched] = append(found[watched], c.session)
				}
			}
		}
	}
	return found
}
