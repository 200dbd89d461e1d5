package integration_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// The sources of the other programs' locks. On machines other than Debian, HOLDFAST_CURATOR is a classpath with Curator and an
// slf4j back end, and HOLDFAST_PYTHON a Python with kazoo.

const debianJars = "/usr/share/java"

// interopInstall ends the failure message for a missing program.
const interopInstall = "run \"make setup\" (it installs Debian's libcurator-recipes-java and python3-kazoo when run as root)"

// curatorCommand returns the command of a CuratorPeer.
func curatorCommand(t *testing.T) []string {
	t.Helper()
	jars, err := curatorJars()
	must(t, err)
	source, err := os.ReadFile(filepath.Join("testdata", "interop", "CuratorPeer.java"))
	must(t, err)
	classes, err := zkserver.Compile("CuratorPeer", string(source), jars)
	must(t, err)
	java, err := zkserver.Java("java")
	must(t, err)
	return []string{
		java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx64m", "-Djava.net.preferIPv4Stack=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classes + ":" + jars, "CuratorPeer",
	}
}

// curatorJars returns a classpath. The manifest of curator-recipes.jar names all that it needs, including ZooKeeper's own client.
func curatorJars() (string, error) {
	if jars := os.Getenv("HOLDFAST_CURATOR"); jars != "" {
		return jars, nil
	}
	var jars []string
	for _, name := range []string{"curator-recipes.jar", "curator-framework.jar", "curator-client.jar", "zookeeper.jar", "slf4j-simple.jar"} {
		jar := filepath.Join(debianJars, name)
		if _, err := os.Stat(jar); err != nil {
			return "", fmt.Errorf("no Curator: %w; %s, or set HOLDFAST_CURATOR to a classpath", err, interopInstall)
		}
		jars = append(jars, jar)
	}
	return strings.Join(jars, ":"), nil
}

// kazooCommand returns the command of a kazoo_peer.py. The system's Python comes first:
// Debian's package is for it, whatever PATH says.
func kazooCommand(t *testing.T) []string {
	t.Helper()
	command, err := findKazoo()
	must(t, err)
	return []string{command, filepath.Join("testdata", "interop", "kazoo_peer.py")}
}

var findKazoo = sync.OnceValues(func() (string, error) {
	candidates := []string{"/usr/bin/python3", "python3"}
	if python := os.Getenv("HOLDFAST_PYTHON"); python != "" {
		candidates = []string{python}
	}
	var tried error
	for _, python := range candidates {
		out, err := exec.Command(python, "-c", "import kazoo.client").CombinedOutput()
		if err == nil {
			return python, nil
		}
		tried = errors.Join(tried, fmt.Errorf("%s: %w: %s", python, err, out))
	}
	return "", fmt.Errorf("no Python has kazoo: %w\n%s, or set HOLDFAST_PYTHON", tried, interopInstall)
})
