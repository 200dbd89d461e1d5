package zkconn

// kept are the watches of one znode that go-zookeeper has, or may have: it goes on renewing those that nobody here waits on.
type kept struct {
	asked int  // reads that are under way
	set   bool // one has been answered, and no event since has used it up
	fired int  // events that have
}

// asks notes that go-zookeeper is about to be asked for a watch; call answered with whether it has set it. A read that fails sets none.
func (ws *watches) asks(key watchKey) (answered func(set bool)) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	k := ws.kept[key]
	if k == nil {
		k = &kept{}
		ws.kept[key] = k
	}
	k.asked++
	fired := k.fired
	return func(set bool) {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		k.asked--
		k.set = k.set || set && k.fired == fired
		ws.forgetLocked(key, k)
	}
}

// forgetLocked forgets the watches of a znode if there are none.
func (ws *watches) forgetLocked(key watchKey, k *kept) {
	if k.asked == 0 && !k.set && ws.kept[key] == k {
		delete(ws.kept, key)
	}
}

// any reports whether go-zookeeper has watches to renew, of those that it was asked for here. It may have one whose answer nobody here
// has looked at.
func (ws *watches) any() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.kept) > 0
}
