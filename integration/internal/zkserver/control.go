package zkserver

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// The programs that run a server on its own and a member of an ensemble, if [Config.Controlled].
var (
	//go:embed Embedded.java
	embeddedSource string
	//go:embed Member.java
	memberSource string

	embedded = program{"Embedded", embeddedSource}
	member   = program{"Member", memberSource}
)

// program is the one class of a Java program.
type program struct{ class, source string }

// Compile compiles a Java program of one class, and returns the directory of its classes. The directory is in the user's cache, because
// a compilation takes longer than the start of a server.
func Compile(class, source, classpath string) (dir string, err error) {
	javac, err := Java("javac")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	if resolved, err := filepath.EvalSymlinks(javac); err == nil {
		javac = resolved
	}
	parent := filepath.Join(cache, "holdfast", "java")
	dir = filepath.Join(parent, fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %q %q", javac, classpath, source))))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	// Another process may compile the program at the same time. Each uses its own directory, and the first one is kept.
	temp, err := os.MkdirTemp(parent, "new-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	file := filepath.Join(temp, class+".java")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		return "", err
	}
	if out, err := exec.Command(javac, "-d", temp, "-cp", classpath, file).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w:\n%s", javac, err, out)
	}
	if err := os.Rename(temp, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, nil
}

// control reaches into a server's data tree: a line protocol on the standard input and output of our Java program that runs
// the server. The program's source lists the requests.
type control struct {
	mu      sync.Mutex
	proc    *child.Process // the one that answers speaks for
	answers *bufio.Reader
}

// request sends the line and waits until the server has carried it out or returned an error.
func (s *Server) request(line string) error {
	c := s.control
	if c == nil {
		return errors.New("not started with Config.Controlled")
	}
	if strings.ContainsAny(line, "\r\n") {
		return fmt.Errorf("request %q: line break", line)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := s.running()
	if p == nil {
		return errors.New("not running")
	}
	if p != c.proc {
		c.proc, c.answers = p, bufio.NewReader(p.Stdout)
	}
	if _, err := io.WriteString(p.Stdin, line+"\n"); err != nil {
		return err
	}
	answer, err := c.answers.ReadString('\n')
	if err != nil {
		return err
	}
	if answer = strings.TrimSpace(answer); answer != "ok" {
		return errors.New(answer)
	}
	return nil
}

// SetCversion sets the counter of a node's children directly: the next sequential child of path gets the number n, and
// later ones count up from it. No client may create or delete children of path meanwhile. The change is not in the transaction
// log, so a restart may lose it. The server must run on its own, with [Config.Controlled].
func (s *Server) SetCversion(path string, n int32) error {
	if err := s.request(fmt.Sprintf("setcversion %d %s", n, path)); err != nil {
		return fmt.Errorf("zookeeper %s: set cversion of %s to %d: %w", s.Addr(), path, n, err)
	}
	return nil
}

// Plant makes server i, a follower, show a znode that no other server has: an ephemeral node at path, owned by a session that does not
// exist. It returns when the server's clients can read the node. It needs [Config.Controlled], and the parent must have reached the server.
//
// ZOOKEEPER-5010 leaves the same state: a follower keeps the ephemeral node of an ended session after its leader has changed. No
// transaction created the node, so clients of server i read it, list it and get the events of its creation, and a Sync does not remove it.
// Writes follow the leader's tree: a delete, or a check of its version, fails with no node. No session's end removes it. The parent's
// counter does not change, and the node's Czxid is the parent's. A restart of the process may lose the node. No client may create path
// afterwards.
func (e *Ensemble) Plant(i int, path string, data []byte) error {
	s := e.servers[i]
	// A server makes session ids of its own id in the highest byte and the time of day below.
	owner := int64(i+1)<<56 | 1
	if err := s.request(fmt.Sprintf("plant %d %s %s", owner, base64.StdEncoding.EncodeToString(data), path)); err != nil {
		return fmt.Errorf("zookeeper %s: plant %s: %w", s.Addr(), path, err)
	}
	return nil
}
