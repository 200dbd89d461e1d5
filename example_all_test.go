package holdfast_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// An account remembers the greatest token that has written to it.
type account struct {
	balance int
	fence   holdfast.Token
}

func (a *account) add(amount int, token holdfast.Token) error {
	if token < a.fence {
		return fmt.Errorf("token %d is stale: %d has written", token, a.fence)
	}
	a.balance, a.fence = a.balance+amount, token
	return nil
}

// transfer moves money while it has the locks of both accounts. Transfers in the opposite
// direction do not deadlock, since the keys are sorted.
func transfer(ctx context.Context, client *holdfast.Client, accounts map[string]*account, from, to string, amount int) error {
	return client.DoAll(ctx, []string{from, to}, func(ctx context.Context, locks *holdfast.Locks) error {
		// ctx ends when the first of the locks does. Each account compares the
		// tokens of its own lock.
		if err := accounts[from].add(-amount, locks.Lock(from).Token()); err != nil {
			return err
		}
		return accounts[to].add(amount, locks.Lock(to).Token())
	})
}

// Two accounts are locked together, and each refuses a holder that is late.
func Example_severalKeys() {
	ctx := context.Background()
	client, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	accounts := map[string]*account{"accounts/7": {balance: 100}, "accounts/9": {balance: 100}}

	there := make(chan error)
	go func() { there <- transfer(ctx, client.Client, accounts, "accounts/7", "accounts/9", 30) }()
	back := transfer(ctx, client.Client, accounts, "accounts/9", "accounts/7", 10)
	fmt.Println(<-there, back)
	fmt.Println(accounts["accounts/7"].balance, accounts["accounts/9"].balance)
	// Output:
	// <nil> <nil>
	// 80 120
}
