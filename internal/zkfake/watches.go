package zkfake

import "maps"

// watches are those of the clients of one member: WatchManager. Each is told of once.
type watches struct {
	data     map[string]map[*conn]struct{} // also of znodes that do not exist
	children map[string]map[*conn]struct{}
}

func newWatches() *watches {
	return &watches{data: make(map[string]map[*conn]struct{}), children: make(map[string]map[*conn]struct{})}
}

// fire tells those who watch for an event: DataTree.processTxn. A client that watches a deleted znode in both ways is told once.
func (w *watches) fire(e event) {
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
