package cli_test

import (
	"os"
	"strconv"
	"testing"
)

// TestRunReapsOrphans checks that no zombies pile up while the tool is the first process
// of a container: orphans become its children there, even those that left the command's
// group.
func TestRunReapsOrphans(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		setting, adopter := testChild(t, "adopts")
		const orphan = `sh -c 'echo $$ >"$DIR/$0"; until [ -e "$DIR/die" ]; do sleep 0.02; done' `
		p := prepare(t, append(e.direct[:len(e.direct):len(e.direct)], setting),
			"run", "-k", newKey(t), "--lease", calm, "--", "sh", "-c", "("+orphan+"inside &); (setsid "+orphan+"outside &); "+untilGo)
		p.cmd.Path, p.cmd.Args = adopter, append([]string{adopter, p.cmd.Path}, p.cmd.Args[1:]...)
		p.launch(nil, nil)
		tool := strconv.Itoa(p.cmd.Process.Pid)
		for _, name := range []string{"inside", "outside"} {
			pid := p.pid(name)
			if !becomes(func() bool { s := stat(pid); return s != nil && s[1] == tool }) {
				t.Fatalf("the orphan %s is not the tool's child", name)
			}
		}
		if err := os.WriteFile(p.file("die"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"inside", "outside"} {
			if pid := p.pid(name); !becomes(func() bool { return stat(pid) == nil }) {
				t.Errorf("the orphan %s is still there, in state %s", name, stat(pid)[0])
			}
		}
		p.goes()
		p.exits(5) // reaping did not lose the command's status
	})
}
