// Guard shows a write to ZooKeeper that fails once its lock is lost, and one
// without that guard. A holder is paused between its last check of the lock and
// its write, which arrives when somebody else holds the lock. The guarded write is
// a transaction in which the servers check that the lock's znode exists.
//
//	go run ./examples/guard -servers 127.0.0.1:2181
//
// Example transact is the same on DynamoDB; for data elsewhere, see the examples
// in fencing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/late"
)

const (
	key    = "examples/guard/account-7"
	parent = "/holdfast-examples" // not under Options.Root, where the locks are
)

// errRefused: the lock was no longer held.
var errRefused = errors.New("refused by ZooKeeper: the lock's node is gone")

func main() {
	engine.Main(func(ctx context.Context, e *engine.Engine) error { return run(ctx, os.Stdout, e) })
}

func run(ctx context.Context, out io.Writer, e *engine.Engine) error {
	if e.Name != "zookeeper" {
		return errors.New("this example writes to ZooKeeper: give its -servers, such as 127.0.0.1:2181")
	}
	client, err := e.NewClient(ctx, "accountant")
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	conn := client.ZooKeeper.Conn()
	account, err := open(conn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Delete(account, -1) }()

	for _, act := range []struct {
		title   string
		turn    func(account string) late.Turn
		refused bool
		balance int
	}{
		{"no guard", unguarded, false, 70},
		{"a guard", guarded, true, 150},
	} {
		fmt.Fprintf(out, "%s:\n", act.title)
		if _, err := conn.Set(account, []byte("100"), -1); err != nil {
			return err
		}
		refused, err := late.Write(ctx, out, e, key, act.turn(account))
		if err != nil {
			return err
		}
		balance, err := read(conn, account)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "       the balance was 100, bob has added 50, and it is %d\n", balance)
		if errors.Is(refused, errRefused) != act.refused || balance != act.balance {
			return fmt.Errorf("the balance was to be %d: %w", act.balance, refused)
		}
	}
	return nil
}

// unguarded writes whatever has happened to the lock since the last check.
func unguarded(account string) late.Turn {
	return func(_ context.Context, client *engine.Client, _ *holdfast.Lock) (func(context.Context) error, error) {
		conn := client.ZooKeeper.Conn()
		balance, err := read(conn, account)
		return func(context.Context) error {
			_, err := conn.Set(account, data(balance+amount(client)), -1)
			return err
		}, err
	}
}

// guarded writes only if the lock is held at that moment.
func guarded(account string) late.Turn {
	return func(_ context.Context, client *engine.Client, lock *holdfast.Lock) (func(context.Context) error, error) {
		guard, err := client.ZooKeeper.Guard(lock)
		if err != nil {
			return nil, err
		}
		conn := client.ZooKeeper.Conn()
		balance, err := read(conn, account)
		return func(context.Context) error {
			return commit(conn, guard, &zk.SetDataRequest{Path: account, Data: data(balance + amount(client)), Version: -1})
		}, err
	}
}

// commit carries out an operation if the lock is held. The first result of the
// transaction is the guard's.
func commit(conn *zk.Conn, guard *zk.CheckVersionRequest, operation any) error {
	results, err := conn.Multi(guard, operation)
	if len(results) > 0 && errors.Is(results[0].Error, zk.ErrNoNode) {
		return errRefused
	}
	return err
}

// open makes a znode for an account that only this process knows.
func open(conn *zk.Conn) (string, error) {
	_, err := conn.Create(parent, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return "", err
	}
	return conn.Create(parent+"/account-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
}

func read(conn *zk.Conn, account string) (int, error) {
	text, _, err := conn.Get(account)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

func data(balance int) []byte { return []byte(strconv.Itoa(balance)) }

// amount is what a client books.
func amount(c *engine.Client) int { return map[string]int{"alice": -30, "bob": 50}[c.Owner()] }
