package integration_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// examples is the directory of the built examples.
type examples string

// An example is a running example.
type example struct {
	*child.Process
	t     *testing.T
	what  string
	log   string // what it writes to its standard error
	out   logged
	heard int           // how far out was read
	gone  chan struct{} // closed when it has ended and all of out is there
}

// starting has a place for each example that has just been started and has not yet printed anything. If all examples started at
// once, none would find its server in the time that it gives itself on a slow machine.
var starting = make(chan struct{}, 4)

// run starts an example, with further variables of the environment. It dies with the test.
func (all examples) run(t *testing.T, name string, env []string, args ...string) *example {
	t.Helper()
	e := &example{
		t:    t,
		what: strings.Join(slices.Concat(env, []string{name}, args), " "),
		log:  filepath.Join(t.TempDir(), "log"),
		gone: make(chan struct{}),
	}
	// env removes the tester's engine settings from the environment, and becomes the
	// example. The race detector would otherwise sleep for a second at its end.
	command := []string{"-u", "HOLDFAST_ENGINE", "-u", "ZOOKEEPER_SERVERS", "-u", "DYNAMODB_ENDPOINT", "GORACE=atexit_sleep_ms=0"}
	command = slices.Concat(command, env, []string{filepath.Join(string(all), name)}, args)
	starting <- struct{}{}
	started := sync.OnceFunc(func() { <-starting })
	time.AfterFunc(5*time.Second, started) // it may have nothing to say
	var err error
	if e.Process, err = child.Start(e.log, true, "env", command...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Kill()
		<-e.gone
	})
	var first [1]byte
	go func() {
		defer close(e.gone)
		n, _ := e.Stdout.Read(first[:])
		started()
		_, _ = e.out.Write(first[:n])
		_, _ = io.Copy(&e.out, e.Stdout)
		_ = e.Stdout.Close()
		<-e.Done()
	}()
	return e
}

// String is an example's output.
func (e *example) String() string {
	return fmt.Sprintf("%s printed:\n%sand to its standard error:\n%s", e.what, e.out.String(), e.stderr())
}

func (e *example) stderr() string {
	log, err := os.ReadFile(e.log)
	if err != nil {
		e.t.Fatal(err)
	}
	return string(log)
}

// says waits until an example prints a match, after the previous one.
func (e *example) says(pattern string) {
	e.t.Helper()
	want := regexp.MustCompile(pattern)
	var found []int
	becomes(func() bool {
		ended := false
		select {
		case <-e.gone:
			ended = true
		default:
		}
		found = want.FindStringIndex(e.out.String()[e.heard:])
		return found != nil || ended
	})
	if found == nil {
		verdict.Fatalf(e.t, "never: %s; %s", pattern, e)
	}
	e.heard += found[1]
}

// told fails the test if not all of the output matches. If the machine stands still, locks end elsewhere than in the story.
func (e *example) told(pattern string) {
	e.t.Helper()
	if !regexp.MustCompile(pattern).MatchString(e.out.String()) {
		verdict.Fatalf(e.t, "not the story that was expected, which is\n%s\n%s", pattern, e)
	}
}

// complained fails the test unless the example printed exactly this line to its standard error.
func (e *example) complained(pattern string) {
	e.t.Helper()
	err := e.stderr()
	if strings.Count(err, "\n") != 1 || !strings.HasSuffix(err, "\n") || !regexp.MustCompile(pattern).MatchString(err) {
		e.t.Errorf("it does not complain by one line like %s; %s", pattern, e)
	}
}

// interrupt does what Ctrl-C does.
func (e *example) interrupt() {
	e.t.Helper()
	if err := e.Signal(syscall.SIGINT); err != nil {
		e.t.Fatalf("%v; %s", err, e)
	}
}

// ends waits for the end of an example. One that succeeds prints nothing to its standard error.
func (e *example) ends(status int) {
	e.t.Helper()
	select {
	case <-e.gone:
	case <-time.After(patience):
		verdict.Fatalf(e.t, "never: its end; %s", e)
	}
	if got, want := e.Err().Error(), fmt.Sprintf("exit status %d", status); got != want {
		verdict.Fatalf(e.t, "%s, want %s; %s", got, want, e) // it may have given up waiting
	}
	if status == 0 && e.stderr() != "" {
		e.t.Errorf("it complains; %s", e)
	}
}

// A place selects an example's engine: by arguments, or by environment variables, name=value.
type place struct {
	args, env []string
	table     string // on DynamoDB
}

func onZooKeeper(addr string) place { return place{args: []string{"-servers", addr}} }

// onDynamoDB is the test's own table.
func onDynamoDB(t *testing.T) place {
	t.Helper()
	db := dynamoserver.Find(t)
	return onTable(db, db.Table(t))
}

func onTable(db *dynamoserver.Target, table string) place {
	return place{args: []string{"-endpoint", db.Endpoint(), "-table", table}, env: exampleAccess(db), table: table}
}

// missingTable is a table name that is unused before and after the test.
func missingTable(t *testing.T, db *dynamoserver.Target) string {
	t.Helper()
	name := "holdfast-test-" + strings.ToLower(rand.Text()[:16])
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := db.Client().DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(name)})
		var none *types.ResourceNotFoundException
		if err != nil && !errors.As(err, &none) {
			t.Error(err)
		}
	})
	return name
}

// dialTable opens a table that an example uses.
func dialTable(t *testing.T, table string) *dynamolock.Client {
	t.Helper()
	client, err := dynamolock.New(limited(t), dynamoserver.Find(t).Client(), &dynamolock.Options{Table: table})
	must(t, err)
	t.Cleanup(func() { must(t, client.Close(context.Background())) })
	return client
}

// exampleAccess are the variables with which an example signs its requests. On our own server there are none.
func exampleAccess(db *dynamoserver.Target) []string {
	if db.Source() != dynamoserver.Given && db.Source() != dynamoserver.AWS {
		return nil
	}
	return slices.DeleteFunc(db.Env(), func(v string) bool { return !strings.HasPrefix(v, "AWS_") })
}

// nowhere is an address without a listener.
func nowhere(t *testing.T) string {
	t.Helper()
	port, err := child.LeasePort()
	must(t, err)
	t.Cleanup(port.Release)
	return "127.0.0.1:" + strconv.Itoa(port.Port)
}

// buildExamples builds programs of the repository, with the race detector if this test has it: then the build cache has their
// packages. Otherwise the build may take a while, and has no limit of its own.
func buildExamples(t *testing.T, packages ...string) examples {
	t.Helper()
	all := examples(t.TempDir())
	info, _ := debug.ReadBuildInfo()
	race := slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
	build := exec.CommandContext(t.Context(), "go", append([]string{
		"build", "-race=" + strconv.FormatBool(race), "-ldflags=-s -w", "-o", string(all) + "/",
	}, packages...)...)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	return all
}
