package zkserver

import (
	"os"
	"path/filepath"
	"testing"
)

// Guards that a run on another version of ZooKeeper really uses it: that no other jar comes first.
func TestVersionIsTheOneOfTheJar(t *testing.T) {
	t.Parallel()
	pattern := filepath.Join(debianJars, "zookeeper-[0-9]*.jar")
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		pattern = filepath.Join(home, "lib", "zookeeper-[0-9]*.jar")
	}
	jars, err := filepath.Glob(pattern)
	if err != nil || len(jars) != 1 {
		t.Fatalf("%s: %q, %v; want one jar", pattern, jars, err)
	}
	version, err := Version(t.Context(), New(t, Config{}).Addr())
	if err != nil {
		t.Fatal(err)
	}
	if got := "zookeeper-" + version + ".jar"; got != filepath.Base(jars[0]) {
		t.Errorf("the server is of %s, its jar is %s", version, jars[0])
	}
}
