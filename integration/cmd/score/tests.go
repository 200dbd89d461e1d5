package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// failedTest matches the name of a test that fails, without those within it, and what is printed if one panics, or hangs.
var failedTest = regexp.MustCompile(`(?m)^ *(?:--- FAIL: |panic: test timed out after .*\n\s*running tests:\n\s*)(\w+)|^(?:panic|fatal error): (.*)`)

// test runs the library's tests that need no server, and the scenes of the integration tests on the fake. It returns one that
// fails, "" if none does, and what was printed. Go runs again only those of packages that a mutant is in.
func (c *copied) test(ctx context.Context) (failed string, out []byte, err error) {
	scenes, err := c.scenes()
	if err != nil {
		return "", nil, err
	}
	for _, some := range [][]string{
		{".", "./zklock/...", "./dynamolock/...", "./memlock/...", "./internal/..."},
		{"-run", scenes, "./integration"},
	} {
		if failed, out, err = c.failed(ctx, some...); failed != "" || err != nil {
			return failed, out, err
		}
	}
	return "", nil, nil
}

// failed runs some tests, and returns one that fails, and what was printed.
func (c *copied) failed(ctx context.Context, some ...string) (string, []byte, error) {
	out, err := c.goTest(ctx, append([]string{"-failfast", "-timeout", "3m"}, some...)...)
	var status *exec.ExitError
	switch {
	case err == nil:
		return "", nil, nil
	case !errors.As(err, &status) || ctx.Err() != nil:
		return "", nil, err
	}
	found := failedTest.FindSubmatch(out)
	switch {
	case found == nil:
		return "", nil, fmt.Errorf("go test: %w\n%s", err, out)
	case len(found[1]) > 0:
		return string(found[1]), out, nil
	default:
		return "panic: " + string(found[2]), out, nil
	}
}

// aTest matches a test, and aPlay what is in it if it is a scene.
var (
	aTest = regexp.MustCompile(`(?ms)^func (Test\w+)\(t \*testing\.T\) \{\n(.*?)^\}`)
	aPlay = regexp.MustCompile(`\bplay\w*\(t, `)
)

// scenes returns a pattern of the names of all scenes.
func (c *copied) scenes() (string, error) {
	files, err := filepath.Glob(filepath.Join(c.dir, "integration", "*_test.go"))
	if err != nil {
		return "", err
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		for _, test := range aTest.FindAllSubmatch(text, -1) {
			if aPlay.Match(test[2]) {
				names = append(names, string(test[1]))
			}
		}
	}
	if len(names) == 0 {
		return "", errors.New("the integration tests have no scenes")
	}
	return "^(" + strings.Join(names, "|") + ")$", nil
}
