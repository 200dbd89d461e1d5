package zkconn

import "slices"

// A Lookout is a set of watches, at most one of each path, whose events arrive on one channel. It belongs to one goroutine.
type Lookout struct {
	Watches map[string]*Watch // by path; a caller deletes those that have fired
	Fired   chan *Watch       // receives each watch that has fired, as far as there is room

	link *Link
}

// NewLookout returns a Lookout without watches, whose channel has room for some.
func (l *Link) NewLookout(room int) *Lookout {
	return &Lookout{Watches: make(map[string]*Watch, room), Fired: make(chan *Watch, room), link: l}
}

// Watch adds a watch.
func (o *Lookout) Watch(path string, kind WatchKind) *Watch {
	ws := o.link.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.joinLocked(watchKey{path, kind})
	w.lookouts = append(w.lookouts, o)
	o.Watches[path] = w
	return w
}

// End gives the watches up. A watch without users ends with its connection.
func (o *Lookout) End() {
	ws := o.link.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range o.Watches {
		w.lookouts = slices.DeleteFunc(w.lookouts, func(x *Lookout) bool { return x == o })
	}
}
