package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// root is the directory of the repository.
const root = "../../.."

// hazards.md names the hazard of each mutant, and results.tsv has a row for each mutant and no other.
func TestMutantsHaveResults(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "design", "hazards.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readResults("results.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range mutants() {
		want = append(want, m.Hazard+" "+m.Name)
		hazard, _, _ := strings.Cut(m.Hazard, ".")
		if !regexp.MustCompile(`[ >]` + hazard + `[ ]`).Match(text) {
			t.Errorf("hazards.md does not name %s (%s)", hazard, m.Name)
		}
	}
	for _, r := range rows {
		got = append(got, r.hazard+" "+r.mutant)
		if r.class != "safety" && r.class != "liveness" {
			t.Errorf("results.tsv: %s (%s): class %q, want safety or liveness", r.hazard, r.mutant, r.class)
		}
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("results.tsv has no row for %s", name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("results.tsv has a row for %s, which is no mutant", name)
		}
	}
}

// The code has each cure that is to be taken out, it is certain which place is meant, and what is left compiles.
func TestMutantsApply(t *testing.T) {
	compiles := newCompiler(t)
	names := map[string]bool{}
	for _, m := range mutants() {
		if names[m.Hazard+m.Name] {
			t.Errorf("%s: there are two mutants of the name %q", m.Hazard, m.Name)
		}
		names[m.Hazard+m.Name] = true
		if !slices.Contains(simulated, m.Engine) {
			t.Errorf("%s (%s): there is no engine %q", m.Hazard, m.Name, m.Engine)
		}
		dir := t.TempDir()
		before := map[string]string{}
		for _, c := range m.changes() {
			if c.Old == c.New {
				t.Errorf("%s (%s): %s stays what it is", m.Hazard, m.Name, c.File)
			}
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(c.File)))
			if err != nil {
				t.Fatal(err)
			}
			before[c.File] = string(text)
			name := filepath.Join(dir, filepath.FromSlash(c.File))
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		undo, err := m.apply(dir)
		if err != nil {
			t.Errorf("%s (%s): %v", m.Hazard, m.Name, err)
		} else if err := compiles.check(dir, slices.Sorted(maps.Keys(before))); err != nil {
			t.Errorf("%s (%s): %v", m.Hazard, m.Name, err)
		}
		if err := undo(); err != nil {
			t.Fatal(err)
		}
		for file, want := range before {
			if text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file))); err != nil || string(text) != want {
				t.Errorf("%s (%s): %s is not what it was: %v", m.Hazard, m.Name, file, err)
			}
		}
	}
}

// The first sign of a failure is found in what a simulation prints.
func TestSign(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"=== RUN   TestSimulation", ""},
		{"    simulation_test.go:110: so far: 3 runs", ""},
		{"    simulation_test.go:115: seed 5: zookeeper, seed 5: 2 findings, first: exclusion: key \"k\": two hold it", "exclusion"},
		{"        VIOLATION  exclusion: key \"k\": two hold it", "exclusion"},
		{"PROBLEM    left behind: /a/b", "left behind: /a/b"},
		{"panic: deadlock: all goroutines in bubble are blocked", "deadlock: all goroutines in bubble are blocked"},
		{"fatal error: all goroutines are asleep - deadlock!", "all goroutines are asleep - deadlock!"},
		{"    simulation_test.go:115: seed 5: start dynamodb: no room", "start dynamodb: no room"},
		{"--- FAIL: TestSimulation (0.00s)", "FAIL"},
		{"        --- FAIL: TestConformance/kazoo/alone/G7_Order (0.00s)", "kazoo/alone/G7_Order"},
	} {
		if got := sign(c.line); got != c.want {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
}

// A list of hazards has rows, or all rows of a name.
func TestChosen(t *testing.T) {
	for _, c := range []struct {
		only string
		want []string
	}{
		{"Z1", []string{"Z1", "Z1.2", "Z1.2", "Z1.3"}},
		{"Z10.2, E9", []string{"Z10.2", "E9", "E9.2"}},
	} {
		f, err := parse([]string{"-only", c.only}, os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range f.chosen() {
			got = append(got, m.Hazard)
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%q: %v, want %v", c.only, got, c.want)
		}
	}
	if f, err := parse([]string{"-only", "Z999"}, &strings.Builder{}); err == nil {
		t.Errorf("Z999: %d mutants, want an error", len(f.chosen()))
	}
}

// A simulation that prints nothing for long is in a run that does not end; one that prints goes on until it has used its time.
func TestSilence(t *testing.T) {
	for _, c := range []struct {
		name  string
		every time.Duration // it prints
		most  time.Duration
		want  result
	}{
		{"silent", time.Hour, time.Hour, result{sign: "no run ends any more"}},
		{"told", longestRun / 2, 0, result{enough: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines, over := make(chan string), make(chan struct{})
				go func() {
					for {
						select {
						case <-time.After(c.every):
							lines <- "so far"
						case <-over:
							return
						}
					}
				}()
				got := watch(os.Getpid(), time.Now(), c.most, longestRun, lines)
				close(over)
				if got.sign != c.want.sign || got.enough != c.want.enough {
					t.Errorf("%+v, want %+v", got, c.want)
				}
			})
		})
	}
}

// A test that fails is found in what Go prints, also one that panics or hangs.
func TestFailedTest(t *testing.T) {
	for _, c := range []struct{ out, test, other string }{
		{"ok  \tx\t0.1s\n--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0.1s)\nFAIL\n", "TestA", ""},
		{"--- FAIL: TestB (0.00s)\npanic: deadlock [recovered]\n", "TestB", ""},
		{"panic: test timed out after 3m0s\n\trunning tests:\n\t\tTestC/d (2m59s)\n", "TestC", ""},
		{"fatal error: concurrent map writes\n", "", "concurrent map writes"},
	} {
		found := failedTest.FindStringSubmatch(c.out)
		if found == nil || found[1] != c.test || found[2] != c.other {
			t.Errorf("%q: %q, want %q and %q", c.out, found, c.test, c.other)
		}
	}
}
