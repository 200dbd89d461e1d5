package integration_test

import (
	"bytes"
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// modelTime bounds the short form of the models, which takes about a minute on an idle
// machine.
const modelTime = 8 * time.Minute

// TestModel model-checks the protocols exhaustively for small numbers of clients and
// faults, and finds a counterexample without each cure. "make model" runs the larger
// cases too.
func TestModel(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: run \"make setup\" (it installs Debian's package %s when run as root)", err, program)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), modelTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nice", "model/run.sh", "short")
	// Signal the whole group; otherwise the verifier would go on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	t.Logf("integration/model/run.sh short:\n%s", &out)
	if err != nil {
		t.Fatalf("a model is not as expected, or could not be checked: %v; see above, and \"integration/model/run.sh -v full NAME\"", err)
	}
}
