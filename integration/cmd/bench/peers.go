package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/npmcache"
)

var (
	//go:embed Curator.java
	curatorSource string
	//go:embed kazoo_lock.py
	kazooSource string
	//go:embed Latch.java
	latchSource string
	//go:embed kazoo_election.py
	kazooElectionSource string
	//go:embed AWSLock.java
	awsSource string
	//go:embed npm.js
	npmSource string
)

// program is another library in the user's cache.
type program struct{ name, version, path string }

// fetchPeers finds the programs, after fetching those that are missing.
func fetchPeers(ctx context.Context) ([]program, error) {
	out, err := exec.CommandContext(ctx, "integration/versions.sh", "peers").Output()
	if err != nil {
		if failed := new(exec.ExitError); errors.As(err, &failed) {
			err = fmt.Errorf("%w:\n%s", err, failed.Stderr)
		}
		return nil, fmt.Errorf("the libraries of other languages: %w\n\"make bench\" installs what this needs, Maven and venv among it", err)
	}
	var all []program
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		all = append(all, program{fields[0], fields[1], fields[2]})
	}
	return all, nil
}

// program is where one of them is: a classpath, or a Python.
func (s *servers) program(ctx context.Context, name string) (path string, err error) {
	if s.peers == nil {
		if s.peers, err = fetchPeers(ctx); err != nil {
			return "", err
		}
	}
	for _, p := range s.peers {
		if p.name == name {
			return p.path, nil
		}
	}
	return "", fmt.Errorf("versions.sh knows no %s", name)
}

// java is a command that compiles and runs one source file.
func java(classpath, source string, args ...string) []string {
	name := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		name = filepath.Join(home, "bin", name)
	}
	return append([]string{name, "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath, source}, args...)
}

// Each of these has its sessions in one process, as holdfast has.
var (
	curator          = curatorRecipe("Curator's InterProcessMutex", 5000, "mutex", handoffSessions, 1)
	curatorRead      = curatorRecipe("Curator's InterProcessReadWriteLock.readLock", 5000, "read", 1, parallelism)
	curatorSemaphore = curatorRecipe("Curator's InterProcessSemaphoreV2", 3000, strconv.Itoa(permits), handoffSessions, contenders)
	kazoo            = kazooRecipe("kazoo's Lock", "mutex", handoffSessions, 1)
	kazooRead        = kazooRecipe("kazoo's ReadLock", "read", 1, parallelism)
	kazooSemaphore   = kazooRecipe("kazoo's Semaphore", strconv.Itoa(permits), handoffSessions, contenders)
)

func curatorRecipe(name string, warmup int, recipe string, sessions, threads int) library {
	return inProcess(name, "Curator.java", curatorSource, warmup, func(ctx context.Context, s *servers, p place, source string) ([]string, error) {
		classpath, err := s.program(ctx, "Curator")
		return append(java(classpath, source), s.zookeeper.recipeArgs(p, recipe, sessions, threads)...), err
	})
}

func kazooRecipe(name, recipe string, sessions, threads int) library {
	return inProcess(name, "kazoo_lock.py", kazooSource, 0, func(ctx context.Context, s *servers, p place, source string) ([]string, error) {
		python, err := s.program(ctx, "kazoo")
		return append([]string{python, source}, s.zookeeper.recipeArgs(p, recipe, sessions, threads)...), err
	})
}

// The elections of the same, under names of their own.
const latchFile, kazooElectionFile = "Latch.java", "kazoo_election.py"

var (
	latch = inProcess("Curator's LeaderLatch", latchFile, latchSource, 2000, func(ctx context.Context, s *servers, p place, source string) ([]string, error) {
		classpath, err := s.program(ctx, "Curator")
		return append(java(classpath, source), s.zookeeper.peerArgs(p)...), err
	})
	kazooElection = inProcess("kazoo's Election", kazooElectionFile, kazooElectionSource, 0, func(ctx context.Context, s *servers, p place, source string) ([]string, error) {
		python, err := s.program(ctx, "kazoo")
		return append([]string{python, source}, s.zookeeper.peerArgs(p)...), err
	})
)

func (e *env) peerArgs(p place) []string { return e.sessionArgs(p, handoffSessions) }

func (e *env) sessionArgs(p place, sessions int) []string {
	return []string{e.addr(p), strconv.FormatInt(sessionTimeout.Milliseconds(), 10), strconv.Itoa(sessions)}
}

func (e *env) recipeArgs(p place, recipe string, sessions, threads int) []string {
	return append(e.sessionArgs(p, sessions), recipe, strconv.Itoa(threads))
}

// npmClient and awsClient have the same table, server and lease as holdfast, and connections that are kept open, too.
var (
	npmClient = inProcess("npm's dynamodb-lock-client", "npm.js", npmSource, 0, func(ctx context.Context, s *servers, _ place, source string) ([]string, error) {
		node, err := npmcache.Node(ctx)
		if err != nil {
			return nil, err
		}
		modules, err := npmcache.Modules(ctx, npmcache.LockClient...)
		if err != nil {
			return nil, err
		}
		config, err := json.Marshal(map[string]any{
			"modules":      modules,
			"table":        s.dynamodb.table,
			"partitionKey": dynamoserver.DefaultKey,
			"owner":        owner,
			"leaseMs":      dynamolock.DefaultLease.Milliseconds(),
		})
		return append(s.dynamodb.target.Env(), "AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE=1", node, "--expose-gc", source, string(config)), err
	})
	awsClient = inProcess("AWS's lock client for Java", "AWSLock.java", awsSource, 3000, func(ctx context.Context, s *servers, p place, source string) ([]string, error) {
		classpath, err := s.program(ctx, "AWS's lock client")
		lease := dynamolock.DefaultLease.Milliseconds()
		env := append(s.dynamodb.target.Env(), "DYNAMODB_ENDPOINT="+s.dynamodb.url(p))
		return append(env, java(classpath, source, s.dynamodb.table, dynamoserver.DefaultKey, owner,
			strconv.FormatInt(lease, 10), strconv.FormatInt(lease/4, 10))...), err
	})
)

// inProcess is a library in a process of its own, whose command line begins with variables of the environment, if any. It has
// done so many operations before it is measured: until Java has compiled what they use, they take several times as long.
func inProcess(
	name, file, source string, warmup int, command func(ctx context.Context, s *servers, p place, source string) ([]string, error),
) library {
	return library{name, func(ctx context.Context, s *servers, p place) (*client, error) {
		process, err := startPeer(file, source, func(path string) ([]string, error) { return command(ctx, s, p, path) })
		if err != nil {
			return nil, err
		}
		if _, err := process.ask(ctx, "run", peerQueue("warm-up"), s.times(warmup, warmup/50)); err != nil {
			process.close()
			return nil, err
		}
		return &client{peer: process, queue: peerQueue, close: process.close}, nil
	}}
}
