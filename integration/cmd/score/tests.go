package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
)

// failedTest matches the name of a test that fails, without those within it, and what is printed if one panics, or hangs.
var failedTest = regexp.MustCompile(`(?m)^ *(?:--- FAIL: |panic: test timed out after .*\n\s*running tests:\n\s*)(\w+)|^(?:panic|fatal error): (.*)`)

// test runs the library's tests, all of which need no server, and returns one that fails, "" if none does. Go runs again only
// those of packages that a mutant is in.
func (c *copied) test(ctx context.Context) (failed string, err error) {
	out, err := c.goTest(ctx, "-failfast", "-timeout", "3m", ".", "./zklock/...", "./dynamolock/...", "./memlock/...", "./internal/...")
	var status *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case !errors.As(err, &status) || ctx.Err() != nil:
		return "", err
	}
	found := failedTest.FindSubmatch(out)
	switch {
	case found == nil:
		return "", fmt.Errorf("go test: %w\n%s", err, out)
	case len(found[1]) > 0:
		return string(found[1]), nil
	default:
		return "panic: " + string(found[2]), nil
	}
}
