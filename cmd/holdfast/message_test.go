package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// TestNotAcquired checks that the key is named once, and the wait if there was one.
func TestNotAcquired(t *testing.T) {
	held := &holdfast.HeldError{Key: "deploy", Holder: holdfast.Info{Key: "deploy", Held: true, Owner: "vm", Token: 51}}
	for wait, want := range map[time.Duration]string{
		0:               `"deploy" is held by "vm" (token 51)`,
		2 * time.Second: `"deploy" is held by "vm" (token 51); gave up after 2s`,
	} {
		err := (&acquireFlags{wait: wait, conflict: 3}).notAcquired(held)
		if err.Error() != want || exitCode(t.Context(), err) != 3 || !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("after a wait of %v: status %d, %v; want %s", wait, exitCode(t.Context(), err), err, want)
		}
	}
}

// TestOtherMode checks that the error about a key that others use with another mode
// names the flag.
func TestOtherMode(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	api := dynamofake.New().Client()
	open, closed := &dynamolock.Options{Table: "locks"}, &dynamolock.Options{Table: "locks", Mode: dynamolock.FailClosed}
	if err := dynamolock.CreateTable(ctx, api, open); err != nil {
		t.Fatal(err)
	}
	take := func(o *dynamolock.Options) error {
		c, err := dynamolock.New(ctx, api, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		lock, err := c.TryAcquire(ctx, "k")
		if err == nil {
			err = lock.Release(ctx)
		}
		return err
	}
	if err := take(open); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	(&app{err: &stderr}).complain(ctx, take(closed))
	if !strings.HasSuffix(stderr.String(), "the key is used with another mode than --mode fail-closed\n") {
		t.Errorf("the message is %q", stderr.String())
	}
}

// TestNoCredentials checks that a user without AWS credentials is told what to set, and
// that other trouble with credentials keeps its own words.
func TestNoCredentials(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_PROFILE", "AWS_DEFAULT_PROFILE",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
	status, _, stderr := call(t, map[string]string{"HOLDFAST_TABLE": "locks"}, "ls")
	const want = "holdfast: no AWS credentials: set AWS_ACCESS_KEY_ID, AWS_PROFILE or a role (failed to refresh cached credentials, "
	if status != exitFailed || !strings.HasPrefix(stderr, want) {
		t.Errorf("status %d, %q; want %d and %q", status, stderr, exitFailed, want)
	}
	var out bytes.Buffer
	expired := "get identity: get credentials: failed to refresh cached credentials, the SSO session has expired"
	(&app{err: &out}).complain(t.Context(), fmt.Errorf("%w: %s", holdfast.ErrDenied, expired))
	if out.String() != "holdfast: permission denied: "+expired+"\n" {
		t.Errorf("the message about an expired session is %q", out.String())
	}
}
