package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

// tryLock goes through the life of a lock. However it ends, the lock is released.
func tryLock(ctx context.Context, locker *holdfast.Client, key string, limit time.Duration) (Finding, error) {
	ctx, cancel := late(ctx)
	defer cancel()
	began := time.Now()
	lock, err := locker.TryAcquire(ctx, key)
	if err != nil {
		return Finding{}, err
	}
	acquired := time.Since(began)
	defer func() {
		ctx, cancel := cleaning(limit)
		defer cancel()
		_ = lock.Release(ctx)
	}()
	if err := lock.Verify(ctx); err != nil {
		return Finding{}, err
	}
	info, err := locker.Inspect(ctx, key)
	if err != nil {
		return Finding{}, err
	}
	if !info.Held || info.Token != lock.Token() || info.Owner != lock.Owner() {
		return problem("see to other programs that change what they find, and to proxies or caches on the way",
			"a lock that was acquired by %q with token %d is shown as held by %q with token %d", lock.Owner(), lock.Token(), info.Owner, info.Token), nil
	}
	began = time.Now()
	if err := lock.Release(ctx); err != nil && !errors.Is(err, holdfast.ErrReleasePending) {
		return Finding{}, err
	}
	return ok("acquired in %v, verified, shown, and released in %v", figure(acquired), figure(time.Since(began))), nil
}
