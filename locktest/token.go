package locktest

import "github.com/holdfast-go/holdfast"

var tokenCases = []testCase{{"G3_TokensRise", tokensRise}}

// tokensRise ends one hold after the other, in every possible way.
func tokensRise(e *env) {
	probe := e.client()
	ends := []struct {
		name string
		end  func(c *Client, lock *holdfast.Lock)
		opts []holdfast.Option
	}{
		{name: "a release", end: func(_ *Client, lock *holdfast.Lock) { e.release(lock) }},
		{name: "another release", end: func(_ *Client, lock *holdfast.Lock) { e.release(lock) }},
		{
			name: "its TTL",
			end:  func(_ *Client, lock *holdfast.Lock) { e.ends(lock, e.handOver(), "TTL", holdfast.ErrTTLExpired) },
			opts: []holdfast.Option{holdfast.WithTTL(e.engine.Lease / 20)},
		},
		{name: "the close of its client", end: func(c *Client, _ *holdfast.Lock) { e.close(c) }},
		{name: "a break", end: func(*Client, *holdfast.Lock) { e.breaks(probe, e.key) }},
		{name: "a cut past its lease", end: func(c *Client, _ *holdfast.Lock) { c.Cut() }},
		{name: "the expiry of its session", end: func(c *Client, _ *holdfast.Lock) {
			if c.Expire != nil {
				c.Expire()
			} else {
				c.Cut()
			}
		}},
		{name: "nothing", end: func(*Client, *holdfast.Lock) {}},
	}
	silent := map[string]bool{"a cut past its lease": true, "the expiry of its session": true}
	var last holdfast.Token
	after := "nothing"
	for _, step := range ends {
		c := e.client()
		lock := e.holdWithin(e.patience(), c, e.key, step.opts...)
		e.newer(lock.Token(), last, "tokens of a key strictly increase, after an end by "+after)
		last, after = lock.Token(), step.name
		step.end(c, lock)
		if e.engine.NeverExpires && silent[step.name] {
			e.keptFrom(probe, e.key)
			e.breaks(probe, e.key)
		}
	}
}
