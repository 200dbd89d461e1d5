package zklock

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// SetData implements [driver.Hold]. Its path is that of this very grant, as the guid in it
// is, so it can touch no other. Each write is conditional on the version of the node that it
// is made for: so of a write and its repetition one is carried out, and one that arrives
// late finds that a later one has been there.
func (h *hold) SetData(ctx context.Context, data []byte) error {
	w := &rewrite{hold: h, data: encodeData(h.owner, data)}
	if err := checkData(w.data); err != nil {
		return err
	}
	return h.engine.link.Retry(ctx, nil, func(now *zkconn.Session) error {
		if now != h.sess {
			return driver.ErrSessionExpired
		}
		for {
			if done, err := w.look(ctx); done || err != nil {
				return err
			}
			err := w.write(ctx)
			if !errors.Is(err, zk.ErrBadVersion) {
				return err
			}
			// Somebody else has written, or an earlier try was carried out. A server has
			// taken in whatever made it refuse the write, so this ends.
		}
	})
}

// rewrite is one call of SetData.
type rewrite struct {
	*hold
	data    []byte
	tried   bool  // a try has no known outcome
	version int32 // that it was for
	hangUps hangUps
}

// look reads the node, if its version is not known. It reports whether an earlier try turns
// out to have been carried out.
func (w *rewrite) look(ctx context.Context) (done bool, err error) {
	h := w.hold
	if h.known {
		return false, nil
	}
	node, err := h.engine.link.Get(ctx, h.path)
	if err != nil {
		return false, h.explain(ctx, err)
	}
	if node.Stat.Czxid != h.czxid || node.Stat.EphemeralOwner != h.sess.ID {
		return false, driver.ErrSessionExpired
	}
	h.version, h.known = node.Stat.Version, true
	if wished(node.Data, h.owner) {
		h.own.wish()
	}
	if w.tried && node.Stat.Version > w.version && bytes.Equal(withoutWish(node.Data), w.data) {
		return true, nil
	}
	return false, nil
}

// write makes one try.
func (w *rewrite) write(ctx context.Context) error {
	h, version, began := w.hold, w.hold.version, time.Now()
	h.known = false
	stat, err := h.engine.link.Set(ctx, h.path, h.own.keepWish(w.data), version)
	switch {
	case err == nil && stat.Czxid == h.czxid:
		h.version, h.known = stat.Version, true
		return nil
	case err == nil:
		return driver.ErrSessionExpired
	case zkconn.UnknownOutcome(err):
		w.tried, w.version = true, version
		if w.hangUps.tooMany(h.sess, time.Since(began), w.data) {
			return tooLarge("write", h.path, w.data)
		}
	}
	return h.explain(ctx, err)
}

// keepWish is what to write to the node in place of data: with the wish that it may contain.
func (o *ownNode) keepWish(data []byte) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wanted {
		return withWish(data)
	}
	return data
}
