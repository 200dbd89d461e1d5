package zklock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// SetData implements [driver.Hold]. The guid in the path is that of this grant, so a write touches no other grant. Each write is
// conditional on the version of the node, so of a write and its repetition the server carries out one, and refuses a write that
// arrives after a later one.
func (h *hold) SetData(ctx context.Context, data []byte) error {
	data = encodeData(h.owner, data)
	if err := checkData(data); err != nil {
		return err
	}
	var hangUps hangUps
	inDoubt := int32(-1) // the version for which a write had no reply
	return h.engine.link.Retry(ctx, nil, func(now *zkconn.Session) error {
		if now != h.sess {
			return driver.ErrSessionExpired
		}
		for {
			if !h.known {
				written, err := h.read(ctx)
				if err != nil || inDoubt >= 0 && h.version > inDoubt && bytes.Equal(written, data) {
					return err
				}
			}
			began := time.Now()
			h.known = false
			stat, err := h.engine.link.Set(ctx, h.path, h.keepWish(data), h.version)
			switch {
			case errors.Is(err, zk.ErrBadVersion):
				continue // another program has written, or an earlier try was carried out
			case err == nil && stat.Czxid == h.czxid:
				h.version, h.known = stat.Version, true
				return nil
			case err == nil:
				return driver.ErrSessionExpired
			case zkconn.UnknownOutcome(err):
				inDoubt = h.version
			}
			return h.explain(ctx, hangUps.check(h.sess, began, data, err))
		}
	})
}

// read reads the version of the node, and returns its data without a wish.
func (h *hold) read(ctx context.Context) ([]byte, error) {
	node, err := h.engine.link.Get(ctx, h.path)
	if err != nil {
		return nil, h.explain(ctx, err)
	}
	if node.Stat.Czxid != h.czxid || node.Stat.EphemeralOwner != h.sess.ID {
		return nil, driver.ErrSessionExpired
	}
	h.version, h.known = node.Stat.Version, true
	if isWish(node.Data) {
		h.wish()
	}
	return withoutWish(node.Data), nil
}

// keepWish adds the wish that the node has to data that is to replace the node's.
func (o *ownNode) keepWish(data []byte) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wanted {
		return withWish(data)
	}
	return data
}

// hangUps counts how often in a row a server has hung up on a request with data, at once.
type hangUps int

// check returns the error of a request with data. A server hangs up, each time and at once, on a request that is larger than its buffer.
func (n *hangUps) check(sess *zkconn.Session, began time.Time, data []byte, err error) error {
	const enough = 4
	if !zkconn.UnknownOutcome(err) {
		return err
	}
	if *n++; time.Since(began) > sess.Times().HangUp || len(data) <= zkconn.MaxGrouped {
		*n = 0
	}
	if *n < enough {
		return err
	}
	return fmt.Errorf("zookeeper: %w",
		driver.Invalid("data", "the server hangs up on a request with %d bytes of it: more than its jute.maxbuffer allows?", len(data)))
}
