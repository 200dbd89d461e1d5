package cli_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStderrFull tests hazard C12: what run and elect have to say does not keep them from watching their command, however long
// nobody reads it. Then all of it comes.
func TestStderrFull(t *testing.T) {
	const lease = 6 * time.Second
	for _, command := range []string{"run", "elect"} {
		t.Run(command, func(t *testing.T) {
			each(t, func(t *testing.T, e *engine) {
				key := newKey(t)
				r, w := pipe(t)
				defer r.Close()
				full := fill(t, int(w.Fd()))
				p := prepare(t, e.env, command, "-k", key, "--lease", lease.String(), "--", "sh", "-c", untilGo)
				p.cmd.Stderr = w
				p.launch()
				_ = w.Close()
				p.pid("pid")
				e.run(t, "ask", key).exits(0)
				time.Sleep(2 * lease) // longer than the guard leaves it alive without a word
				p.goes()
				text := make(chan string, 1)
				go func() {
					all, _ := io.ReadAll(r)
					text <- string(all[min(full, len(all)):])
				}()
				p.exits(5)
				if said := <-text; !strings.Contains(said, "holdfast: somebody asks for "+key+": it is held until the command ends\n") {
					t.Errorf("stderr is %q", said)
				}
			})
		})
	}
}

// fill fills a pipe, and returns with how many bytes.
func fill(t *testing.T, pipe int) (n int) {
	t.Helper()
	must(t, unix.SetNonblock(pipe, true))
	for {
		some, err := unix.Write(pipe, make([]byte, 4096))
		if err != nil {
			break
		}
		n += some
	}
	must(t, unix.SetNonblock(pipe, false))
	return n
}
