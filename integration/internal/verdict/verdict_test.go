package verdict

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(Main(m.Run)) }

// scriptVariable has what TestScript does at each of its tries, one word a try.
const scriptVariable = "HOLDFAST_VERDICT_SCRIPT"

// TestScript is the test that TestMainTriesAgain runs as a process of its own.
func TestScript(t *testing.T) {
	script := strings.Fields(os.Getenv(scriptVariable))
	if len(script) == 0 {
		return
	}
	t.Run("the part (a|b)", func(t *testing.T) {
		machine = &witness{awake: time.Now()}
		Begin(t)
		switch script[try()-1] {
		case "inconclusive":
			Inconclusive(t, "nothing happened")
		case "stalled":
			machine.awake = time.Now().Add(-2 * Excuse)
			Fatalf(t, "never")
		case "earlier": // a stall before the test
			machine.stalls = []stall{{time.Now().Add(-time.Minute), time.Minute}}
			Fatalf(t, "never")
		case "violation":
			machine.awake = time.Now().Add(-time.Minute)
			t.Error("two holders")
			Fatalf(t, "never")
		}
	})
}

func TestMainTriesAgain(t *testing.T) {
	for script, ok := range map[string]bool{
		"pass":                      true,
		"inconclusive pass":         true,
		"inconclusive stalled pass": true,
		"stalled stalled stalled":   false,
		"stalled violation":         false,
		"earlier":                   false,
		"violation":                 false,
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestScript$")
		cmd.Env = append(os.Environ(), scriptVariable+"="+script, tryVariable+"=1")
		if out, err := cmd.CombinedOutput(); (err == nil) != ok {
			t.Errorf("%s: %v; want success: %v\n%s", script, err, ok, out)
		}
	}
}
