package dynamolock

import "github.com/holdfast-go/holdfast/internal/strict"

// grants are those of a client that are in use, by a lock or by a call that is trying to get one or gives one back.
// Whatever else an item shows of this client is nobody's.
type grants struct {
	mu strict.Mutex[strict.Grants]
	of map[string]*hold // nil for one that a call is trying to get, or that is being given back
}

func newGrants() *grants { return &grants{of: make(map[string]*hold)} }

// enter registers a grant that a call is trying to get, or gives back.
func (g *grants) enter(grant string) { g.set(grant, nil) }

// got registers that a call has got it.
func (g *grants) got(h *hold) { g.set(h.grant, h) }

func (g *grants) set(grant string, h *hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of[grant] = h
}

// forget removes a grant that nobody has or will have, and notes what it leaves in the same moment: a worker that found it in
// between would take it for what another has left.
func (g *grants) forget(grant string, note func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.of, grant)
	note()
}

// alive reports whether a lock or a call has a grant.
func (g *grants) alive(grant string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.of[grant]
	return ok
}

// holding reports whether this client holds a key under an owner name.
func (g *grants) holding(key, owner string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.of {
		if h != nil && h.name == key && h.owner == owner {
			return true
		}
	}
	return false
}
