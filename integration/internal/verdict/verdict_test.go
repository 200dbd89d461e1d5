package verdict

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(Main(m.Run)) }

// scriptVariable has what TestScript does at each of its tries, one word a try.
const scriptVariable = "HOLDFAST_VERDICT_SCRIPT"

// TestScript is the test that the others run as a process of its own. It has a subtest, which is run again alone.
func TestScript(t *testing.T) {
	script := strings.Fields(os.Getenv(scriptVariable))
	if len(script) == 0 {
		return
	}
	if state.try == 1 {
		t.Run("beside", func(*testing.T) { println("beside has run") })
	}
	t.Run("the part (a|b)", func(t *testing.T) {
		state.witness = &witness{since: time.Now()} // it sees no stalls but those of the script, unless this takes long
		Begin(t)
		switch word := script[state.try-1]; word {
		case "inconclusive":
			Inconclusive(t, "nothing\nhappened")
		case "stalled": // a wait in vain on a machine that stood still
			state.witness.stalls = append(state.witness.stalls, stall{time.Now(), Excuse})
			Fatalf(t, "never")
		case "never":
			Fatalf(t, "never")
		case "violation":
			state.witness.stalls = append(state.witness.stalls, stall{time.Now(), time.Minute})
			t.Error("two holders")
			Fatalf(t, "never")
		}
	})
}

func TestMainTriesAgain(t *testing.T) {
	for script, want := range map[string]struct {
		ok    bool
		tries string // the verdicts in the report
	}{
		"pass":                                   {true, "pass"},
		"inconclusive pass":                      {true, "inconclusive pass"},
		"inconclusive stalled pass":              {true, "inconclusive inconclusive pass"},
		"inconclusive inconclusive inconclusive": {false, "inconclusive inconclusive FAIL"},
		"stalled stalled stalled":                {false, "inconclusive inconclusive FAIL"},
		"stalled violation pass":                 {false, "inconclusive FAIL"},
		"never pass":                             {false, "FAIL"},
		"violation pass":                         {false, "FAIL"},
	} {
		t.Run(script, func(t *testing.T) {
			reports := filepath.Join(t.TempDir(), "reports")
			cmd := exec.Command(os.Args[0], "-test.run=^TestScript$", "-test.v")
			cmd.Env = append(os.Environ(), scriptVariable+"="+script, reportsVariable+"="+reports, tryVariable+"=1")
			out, err := cmd.CombinedOutput()
			if ok := err == nil; ok != want.ok {
				t.Errorf("exit: %v; want success: %v", err, want.ok)
			}
			if n := strings.Count(string(out), "beside has run"); n != 1 {
				t.Errorf("the subtest beside ran %d times, want once", n)
			}
			text, _ := os.ReadFile(reports)
			var tries []string
			for line := range strings.Lines(string(text)) {
				columns := strings.Split(line, "\t")
				if len(columns) != 6 || !strings.HasPrefix(columns[4], "TestScript/the_part_") {
					t.Errorf("a line of the report has not the right columns: %q", line)
				}
				tries = append(tries, columns[0])
			}
			if got := strings.Join(tries, " "); got != want.tries {
				t.Errorf("tries: %q, want %q", got, want.tries)
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

func TestWitness(t *testing.T) {
	w := &witness{since: time.Now()}
	w.since = w.since.Add(-time.Second) // the machine has stood still until now
	began := time.Now()
	if got := w.worst(began.Add(-10 * time.Second)); got < 900*time.Millisecond {
		t.Errorf("the worst stall is %v, want about a second", got)
	}
	if got := w.worst(began.Add(time.Minute)); got != 0 {
		t.Errorf("after the stall: %v, want none", got)
	}
}

func TestPattern(t *testing.T) {
	got := pattern([]string{"TestA", "TestB/with_(a|b)/c"})
	want := `^TestA$|^TestB$/^` + regexp.QuoteMeta("with_(a|b)") + `$/^c$`
	if got != want {
		t.Errorf("pattern %s, want %s", got, want)
	}
}

func TestArguments(t *testing.T) {
	got := arguments([]string{"-test.run=X", "-test.testlogfile=/tmp/x", "-test.v=true", "-test.parallel=5"}, "^Y$")
	if strings.Join(got, " ") != "-test.run=^Y$ -test.v=true -test.parallel=5" {
		t.Errorf("arguments %q", got)
	}
}
