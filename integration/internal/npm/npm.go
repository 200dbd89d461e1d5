// Package npm finds the npm packages that the tests use: dynalite, a server with the API of DynamoDB, and another lock client, to
// share locks with. integration/testdata/npm names their versions, and "make setup" installs them there.
package npm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

const cure = "run \"make setup\", which installs what is missing"

// Modules returns the node_modules folder of the packages. Callers must not write to it.
func Modules() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	modules := filepath.Join(filepath.Dir(file), "../../testdata/npm/node_modules")
	if _, err := os.Stat(filepath.Join(modules, ".package-lock.json")); err != nil {
		return "", fmt.Errorf("no npm packages: %w; %s", err, cure)
	}
	return modules, nil
}

// Node returns the path of Node.js: of the one beside the packages, which "make setup" installs if the system's is too old, else of
// the one in PATH.
func Node() (string, error) {
	modules, err := Modules()
	if err != nil {
		return "", err
	}
	if beside, _ := filepath.Glob(filepath.Join(modules, "node-*", "bin", "node")); len(beside) > 0 {
		return beside[0], nil
	}
	path, err := exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("no Node.js: %w; %s", err, cure)
	}
	return path, nil
}
