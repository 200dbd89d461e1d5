package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// Readers hold a key together; a writer holds it alone.
func ExampleWithShared() {
	ctx := context.Background()
	client, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	if err := readAndWrite(ctx, client.Client); err != nil {
		log.Fatal(err)
	}
	// Output:
	// answering red, token 1
	// writing blue, token 2
}

func readAndWrite(ctx context.Context, client *holdfast.Client) error {
	err := client.Do(ctx, "settings", func(ctx context.Context, lock *holdfast.Lock) error {
		return answer(ctx, load(ctx), lock.Token()) // together with other readers
	}, holdfast.WithShared())
	if err != nil {
		return err
	}
	return client.Do(ctx, "settings", func(ctx context.Context, lock *holdfast.Lock) error {
		return store(ctx, "blue", lock.Token()) // alone; the store refuses smaller tokens
	})
}

func load(context.Context) string { return "red" }

func answer(_ context.Context, value string, token holdfast.Token) error {
	fmt.Printf("answering %s, token %v\n", value, token)
	return nil
}

func store(_ context.Context, value string, token holdfast.Token) error {
	fmt.Printf("writing %s, token %v\n", value, token)
	return nil
}

// Five uploads at a time, in the whole fleet.
func ExampleWithLimit() {
	ctx := context.Background()
	client, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	if err := uploadFile(ctx, client.Client, "a.txt"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// uploading a.txt
}

func uploadFile(ctx context.Context, client *holdfast.Client, file string) error {
	return client.Do(ctx, "uploads", func(ctx context.Context, _ *holdfast.Lock) error {
		return upload(ctx, file)
	}, holdfast.WithLimit(5))
}

func upload(_ context.Context, file string) error {
	fmt.Println("uploading", file)
	return nil
}

// Each of several who share a key can be asked to let go.
func ExampleInfo_Each() {
	ctx := context.Background()
	client, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	for range 2 {
		if _, err := client.Acquire(ctx, "settings", holdfast.WithShared()); err != nil {
			log.Fatal(err)
		}
	}
	if err := askAll(ctx, client.Client); err != nil {
		log.Fatal(err)
	}
	// Output:
	// asked the holder of token 1
	// asked the holder of token 2
}

func askAll(ctx context.Context, client *holdfast.Client) error {
	info, err := client.Inspect(ctx, "settings")
	if err != nil {
		return err
	}
	for grant := range info.Each() {
		err = errors.Join(err, client.Ask(ctx, grant))
		fmt.Println("asked the holder of token", grant.Token)
	}
	return err
}
