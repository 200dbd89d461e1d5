package locktest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A testCase tests one rule. Its name begins with the number of its guarantee.
type testCase struct {
	name string
	run  func(e *env)
}

// cases is the suite, in the order of the guarantees.
var cases = []testCase{
	{"G1_OneHolder", oneHolder},
}

// env is what a case works with.
type env struct {
	testing.TB
	engine  Engine
	harness Harness
	name    string // of the case
	rule    string // of the contract: the number that its name begins with
	key     string // unique to the case
	ctx     context.Context
}

// caseLimit bounds a case, as a multiple of Lease and Soon, so that a call that
// never returns becomes a failure with a name.
const caseLimit = 12

func runCase(t testing.TB, engine Engine, c testCase) {
	if engine.Soon == 0 {
		engine.Soon = 10 * time.Second
	}
	if engine.Late == 0 {
		engine.Late = engine.Lease + engine.Soon
	}
	ctx, cancel := context.WithTimeout(context.Background(), caseLimit*(engine.Lease+engine.Late+engine.Soon))
	defer cancel()
	rule, _, _ := strings.Cut(c.name, "_")
	e := &env{
		TB:      t,
		engine:  engine,
		harness: engine.Start(t),
		name:    c.name,
		rule:    rule,
		key:     fmt.Sprintf("locktest/%s/%s", rand.Text()[:10], c.name),
		ctx:     ctx,
	}
	c.run(e)
}

// client connects a client that is closed when the case is over.
func (e *env) client() *Client { return e.clientWith(ClientOptions{}) }

func (e *env) clientWith(o ClientOptions) *Client {
	e.Helper()
	c := e.harness.NewClient(e.TB, o)
	e.Cleanup(func() {
		c.Heal()
		ctx, cancel := context.WithTimeout(context.Background(), e.engine.Soon)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			e.Logf("closing a client after the case: %v", err)
		}
	})
	return c
}

// soon is a context for one step that needs no waiting but the engine's answer.
func (e *env) soon() context.Context {
	ctx, cancel := context.WithTimeout(e.ctx, e.engine.Soon)
	e.Cleanup(cancel)
	return ctx
}

// broken fails the case: a rule of its guarantee does not hold.
func (e *env) broken(rule, format string, args ...any) {
	e.Helper()
	e.Fatalf("%s broken: %s\n\t%s", e.rule, rule, fmt.Sprintf(format, args...))
}

// hold acquires the key of the case.
func (e *env) hold(c *Client, opts ...holdfast.Option) *holdfast.Lock {
	e.Helper()
	lock, err := c.Acquire(e.soon(), e.key, opts...)
	if err != nil {
		e.Fatalf("%s: acquiring a free key: %v", e.rule, err)
	}
	return lock
}

func oneHolder(e *env) {
	a, b := e.client(), e.client()
	e.hold(a)
	if _, err := b.TryAcquire(e.soon(), e.key); err == nil {
		e.broken("a key has one holder", "a second client was granted a key that is held")
	}
}
