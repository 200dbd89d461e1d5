package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// etcdSource is a module of its own: see there.
const etcdSource = "integration/cmd/bench/etcd"

// etcdServer is an etcd of one member, in a process of its own.
type etcdServer struct {
	binary  string
	addr    string
	dir     string
	lock    *os.File
	ports   []*child.PortLease
	process *child.Process
}

// startEtcd compiles etcd, which takes minutes the first time, and starts it.
func startEtcd(ctx context.Context) (e *etcdServer, version string, err error) {
	e = &etcdServer{}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	if e.dir, e.lock, err = child.NewDir("holdfast-etcd-"); err != nil {
		return nil, "", err
	}
	e.binary = filepath.Join(e.dir, "etcd")
	build := exec.CommandContext(ctx, "go", "build", "-o", e.binary, ".")
	build.Dir, build.Env = etcdSource, append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("compile etcd: %w:\n%s", err, out)
	}
	if e.ports, err = child.LeasePorts(2); err != nil {
		return nil, "", err
	}
	log := filepath.Join(e.dir, "log")
	port := func(i int) string { return strconv.Itoa(e.ports[i].Port) }
	e.addr = "127.0.0.1:" + port(0)
	if e.process, err = child.Start(log, true, e.binary, "serve", filepath.Join(e.dir, "data"), port(0), port(1)); err != nil {
		return nil, "", err
	}
	late := time.AfterFunc(30*time.Second, e.process.Kill)
	defer late.Stop()
	if version, err = bufio.NewReader(e.process.Stdout).ReadString('\n'); err != nil {
		said, logErr := os.ReadFile(log)
		return nil, "", fmt.Errorf("etcd: %w; it said:\n%s", errors.Join(err, logErr), said)
	}
	return e, strings.TrimSpace(version), nil
}

func (e *etcdServer) close() {
	if e.process != nil {
		e.process.Kill()
		_ = e.process.Stdout.Close()
	}
	child.ReleasePorts(e.ports)
	if e.lock != nil {
		_ = os.RemoveAll(e.dir)
		_ = e.lock.Close()
	}
}

// contend is the command line of a process of candidates.
func (e *etcdServer) contend(session time.Duration) []string {
	return []string{e.binary, "contend", e.addr, strconv.Itoa(int(session.Seconds()))}
}

// etcdElection is etcd's concurrency.Election. One session has one candidate, so its process has as many as there are.
var etcdElection = library{"etcd's Election", func(ctx context.Context, s *servers, _ place) (*client, error) {
	e, err := s.etcdServer(ctx)
	if err != nil {
		return nil, err
	}
	process, err := startPeer("etcd", "", func(string) ([]string, error) { return e.contend(sessionTimeout), nil })
	if err != nil {
		return nil, err
	}
	process.settled = true
	if _, err := process.ask(ctx, "run", "warm-up", s.times(200, 10)); err != nil {
		process.close()
		return nil, err
	}
	return &client{peer: process, queue: func(key string) string { return key }, close: process.close}, nil
}}
