package integration_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
)

// A transaction with a Guard succeeds while the lock is held, and not after.
func TestGuard(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		resource := persistent(t, s.conn)
		write := func(guard *zk.CheckVersionRequest, text string) error {
			return errOf(s.client.Conn().Multi(guard, &zk.SetDataRequest{Path: resource, Data: []byte(text), Version: -1}))
		}
		for name, test := range map[string]struct {
			end  func(lock *holdfast.Lock)
			want error
		}{
			"release": {func(lock *holdfast.Lock) { release(t, lock) }, holdfast.ErrReleased},
			"break": {func(lock *holdfast.Lock) {
				info, err := s.client.Inspect(limited(t), s.key)
				must(t, err)
				must(t, s.client.Break(limited(t), info))
				receive(t, "Done", lock.Done())
			}, holdfast.ErrBroken},
		} {
			lock := s.take(t)
			guard, err := s.client.Guard(lock)
			must(t, err)
			if err := write(guard, "held"); err != nil {
				t.Errorf("while held: %v", err)
			}
			test.end(lock)
			next := s.take(t) // the key is held again, by another grant
			if err := write(guard, "not held"); err == nil {
				t.Errorf("after %s: the write succeeds", name)
			}
			if _, err := s.client.Guard(lock); !errors.Is(err, test.want) {
				t.Errorf("after %s: Guard returns %v, want %v", name, err, test.want)
			}
			release(t, next)
			if data, _, err := s.conn.Get(resource); err != nil || string(data) != "held" {
				t.Errorf("after %s: resource has %q, %v", name, data, err)
			}
		}
		foreign := take(t, s.other(t), s.key)
		for name, lock := range map[string]*holdfast.Lock{"another client's": foreign, "no": nil, "an ungranted": {}} {
			if _, err := s.client.Guard(lock); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("Guard of %s lock returns %v", name, err)
			}
		}
		release(t, foreign)
		s.clean(t)
		last := s.take(t)
		must(t, s.client.Close(limited(t)))
		if _, err := s.client.Guard(last); err == nil {
			t.Error("Guard returns no error after Close")
		}
	})
}
