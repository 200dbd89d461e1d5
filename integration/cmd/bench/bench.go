package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// owner is the data of every lock, on both sides.
const owner = "bench-host:12345:ABCDEFGHIJ"

// linkLatency is what a proxy adds in each direction.
const linkLatency = time.Millisecond

// bench holds the servers. The first row that needs a server starts it.
type bench struct {
	began     string // the machine and its load
	zookeeper *zookeeper
	dynamo    *dynamo
	peers     map[string]string // names of libraries of other languages to classpaths and interpreters
	versions  []string          // of what has been used
	names     int
}

func (b *bench) close() {
	if b.zookeeper != nil {
		b.zookeeper.close()
	}
	if b.dynamo != nil {
		b.dynamo.close()
	}
}

// name returns an unused name.
func (b *bench) name(prefix string) string {
	b.names++
	return fmt.Sprintf("%s-%d", prefix, b.names)
}

func (b *bench) uses(name, version string) {
	if v := name + " " + strings.TrimPrefix(version, "v"); !slices.Contains(b.versions, v) {
		b.versions = append(b.versions, v)
	}
}

// usesModule notes the version of a Go module with which this program was built.
func (b *bench) usesModule(name, path string) {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == path {
			b.uses(name, dep.Version)
		}
	}
}

// peer is the classpath or interpreter of a library, which versions.sh fetches.
func (b *bench) peer(ctx context.Context, name string) (string, error) {
	if b.peers == nil {
		cmd := exec.CommandContext(ctx, "integration/versions.sh", "peers")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("fetch the libraries of other languages: %w; \"make bench\" installs what this needs", err)
		}
		b.peers = make(map[string]string)
		for row := range strings.Lines(string(out)) {
			fields := strings.Split(strings.TrimSpace(row), "\t")
			b.peers[fields[0]] = fields[2]
			b.uses(fields[0], fields[1])
		}
	}
	return b.peers[name], nil
}

// lifetime is the time of one row. Its clients end with it.
type lifetime struct {
	*bench
	ends []func()
}

func (l *lifetime) atEnd(f func()) { l.ends = append(l.ends, f) }

func (l *lifetime) close() {
	for _, end := range slices.Backward(l.ends) {
		end()
	}
}

// setting says when, where and with what the table was measured.
func (b *bench) setting(pairs int) string {
	return fmt.Sprintf("%d pairs of blocks per row; %s; Go %s.", pairs, b.began,
		strings.Join(append([]string{strings.TrimPrefix(runtime.Version(), "go")}, b.versions...), ", "))
}

// machine describes this machine and its present load, as far as Linux shows them.
func machine() string {
	cpu, load := "unknown processor", "unknown"
	info, _ := os.ReadFile("/proc/cpuinfo")
	for row := range strings.Lines(string(info)) {
		if name, value, _ := strings.Cut(row, ":"); strings.TrimSpace(name) == "model name" {
			cpu = strings.TrimSpace(value)
			break
		}
	}
	if averages, _ := os.ReadFile("/proc/loadavg"); len(averages) > 0 {
		load = strings.Fields(string(averages))[0]
	}
	return fmt.Sprintf("%s; %s, %d CPUs, %s/%s, load average %s", time.Now().UTC().Format(time.DateOnly), cpu, runtime.NumCPU(),
		runtime.GOOS, runtime.GOARCH, load)
}
