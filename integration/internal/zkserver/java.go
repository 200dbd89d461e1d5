package zkserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// errNotInstalled: Java or ZooKeeper's jars are missing on this machine. The text says what to do about it.
var errNotInstalled = errors.New("no local ZooKeeper: run \"make setup\" (it installs Debian's libzookeeper-java and a " +
	"headless JDK when run as root), or set JAVA_HOME and ZOOKEEPER_HOME")

// debianJars holds what Debian's libzookeeper-java installs. The manifest of zookeeper.jar names all its dependencies there,
// but for what Netty, and so TLS, and the AdminServer need.
const debianJars = "/usr/share/java"

// Java finds java, or another program of a JDK.
func Java(name string) (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if path := filepath.Join(home, "bin", name); isFile(path) {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w (%s is not in PATH)", errNotInstalled, name)
	}
	return path, nil
}

// classpath finds ZooKeeper with one logging back end that writes to standard error.
func classpath() (string, error) {
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		jars, err := filepath.Glob(filepath.Join(home, "lib", "zookeeper-[0-9]*.jar"))
		if err != nil || len(jars) == 0 {
			return "", fmt.Errorf("%w (ZOOKEEPER_HOME=%s has no lib/zookeeper-*.jar)", errNotInstalled, home)
		}
		return filepath.Join(home, "conf") + ":" + filepath.Join(home, "lib", "*"), nil
	}
	jar, log := filepath.Join(debianJars, "zookeeper.jar"), filepath.Join(debianJars, "slf4j-simple.jar")
	for _, path := range []string{jar, log} {
		if !isFile(path) {
			return "", fmt.Errorf("%w (%s does not exist)", errNotInstalled, path)
		}
	}
	var cp strings.Builder
	cp.WriteString(jar + ":" + log)
	for _, name := range []string{"netty-codec.jar", "servlet-api.jar"} {
		cp.WriteString(":" + filepath.Join(debianJars, name))
	}
	return cp.String(), nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}
