package doctor

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/zktimes"
	"github.com/holdfast-go/holdfast/zklock"
)

// write measures writes to the quorum, which keep a session alive.
func (e *ensemble) write(ctx context.Context) ([]Finding, error) {
	err := e.makeRoot(ctx)
	if err == nil {
		e.made = append(e.made, e.probe)
		err = do(ctx, e.main, func() error {
			_, err := e.main.conn().Create(e.probe, nil, zk.FlagEphemeral, orOpen(e.Options.ACL))
			return err
		})
	}
	if err != nil {
		return nil, unlessDenied(step("create", e.probe, err))
	}
	e.written = true
	took, err := measure(func() error {
		return do(ctx, e.main, func() error { _, err := e.main.conn().Set(e.probe, nil, -1); return err })
	})
	if err != nil {
		return nil, step("write", e.probe, err)
	}
	times := zktimes.Of(e.main.client.SessionTimeout(), 0, 0, 0)
	return only(judgeWrites(took, times.Heartbeat, times.Answer))
}

// trial takes a lock as a program would. Its own session removes all that an abandoned acquisition leaves behind.
func (e *ensemble) trial(ctx context.Context) ([]Finding, error) {
	if !e.written {
		return nil, errUnseen
	}
	client, err := e.dial(ctx, e.main)
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := cleaning(e.Timeout)
		defer cancel()
		_ = client.Close(ctx)
	}()
	key := probeName()
	e.made = append(e.made, join(e.root, key))
	findings, err := tryLock(ctx, client.Client, key, e.Timeout)
	return findings, unlessDenied(err)
}

// dial connects a client to one server.
func (e *ensemble) dial(ctx context.Context, s *server) (*zklock.Client, error) {
	options := e.Options
	options.TLS, options.TLSConfig = s.tls, nil
	return zklock.Dial(ctx, []string{s.at + e.chroot}, &options)
}
