package zkserver

import (
	"os"
	"path/filepath"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for _, c := range []struct{ answer, want string }{
		{"Zookeeper version: 3.5.10-2ffbe7bd6ac8e9dfd5d2ea3fb0f1a1b2d0d7d8ff, built on 05/20/2022 13:19 GMT\nLatency", "3.5.10"},
		{"Zookeeper version: 3.8.0-${mvngit.commit.id}, built on ${build.time}\n", "3.8.0"},
		{"Zookeeper version: 3.10.0-SNAPSHOT-abc\n", "3.10.0"},
		{"Zookeeper version: 3.9.5", "3.9.5"},
		{"Zookeeper version: 3.9\n", ""},
		{"Zookeeper version: \n", ""},
		{"This ZooKeeper instance is not currently serving requests\n", ""},
		{"", ""},
	} {
		if got, err := parseVersion(c.answer); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("parseVersion(%q) = %q, %v; want %q", c.answer, got, err, c.want)
		}
	}
}

func TestBefore(t *testing.T) {
	for _, c := range []struct {
		version string
		want    bool
	}{{"3.5.10", true}, {"3.6.0", false}, {"3.10.1", false}, {"2.9.9", true}, {"4.0.0", false}} {
		if got := Before(c.version, 3, 6); got != c.want {
			t.Errorf("Before(%q, 3, 6) = %v", c.version, got)
		}
	}
}

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
