package zklock

import "github.com/go-zookeeper/zk"

// onEvent takes every event of go-zookeeper: changes of the session's state and
// watches that fired. It is called on go-zookeeper's own goroutines, sometimes
// with its locks held, so it neither blocks nor calls back. (The channel of
// events would be no substitute: it drops what does not fit.)
//
// What users see of it are holdfast's events:
//
//	session established, or resumed  ->  Ready
//	connection lost                  ->  Disconnected; locks live on until their deadline
//	session expired                  ->  Lost (ErrSessionExpired) for each lock held
//	own node deleted by somebody     ->  Lost (ErrBroken, ErrReclaimed)
func (l *link) onEvent(event zk.Event) {
	switch event.Type {
	case zk.EventSession:
		l.onState(event.State)
	case zk.EventNodeCreated, zk.EventNodeDeleted, zk.EventNodeDataChanged, zk.EventNodeChildrenChanged, zk.EventNotWatching:
		l.watches.fire(event.Path, event.Type)
	}
}

func (l *link) onState(state zk.State) {
	switch state {
	case zk.StateHasSession:
		l.opened()
	case zk.StateExpired:
		l.expired()
	case zk.StateDisconnected:
		l.mu.Lock()
		l.shutLocked()
		l.mu.Unlock()
	}
}
