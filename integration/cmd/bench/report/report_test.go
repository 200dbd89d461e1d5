package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// example is a run with a contest of each kind and a count. The text has what must
// be escaped in a picture.
func example() *Report {
	contest := func(where string, waiters int, other string, ours ...time.Duration) Row {
		c := Contest{Where: where, What: "hand <-> off", Waiters: waiters, Op: "thing", Ops: 10, Ours: Side{"holdfast", ours}, Other: Side{Name: other}}
		for _, d := range ours {
			c.Other.Blocks = append(c.Other.Blocks, 2*d)
		}
		return Compare(c, AtLeast(1))
	}
	election := contest("here", 2, "a rival", time.Second)
	election.Contest.Election = true
	sharing := contest("here", 0, "a sharer", time.Second)
	sharing.Contest.Sharing = true
	return &Report{
		Began:    time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC),
		Took:     "1m0s",
		Machine:  Machine{CPU: "a machine", Cores: 4, System: "an/OS", LoadBefore: "1 2 3", LoadAfter: "4 5 6"},
		Versions: []Version{{"Go", "1.99"}, {"R&D", "7"}},
		Rows: []Row{
			contest("here", 0, "other's", 3*time.Millisecond, 2*time.Millisecond, 4*time.Millisecond),
			contest("here", 2, "other's", 5*time.Millisecond, 6*time.Millisecond),
			contest("there", 0, "another", 70*time.Millisecond),
			contest("here", 0, "another", 8*time.Millisecond),
			contest("here", 20, "other's", 7*time.Millisecond, 8*time.Millisecond),
			election,
			sharing,
			Judge("a count", "of things", "3 rounds", Limit(5, " B"), []float64{1, 2, 6}),
		},
	}
}

// TestEncode guards that a run's file loses nothing.
func TestEncode(t *testing.T) {
	t.Parallel()
	want := example()
	b, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("written %+v\nread %+v", want, got)
	}
	if !bytes.Contains(b, []byte("[3000000,2000000,4000000]")) {
		t.Errorf("a list of numbers is not on one line:\n%s", b)
	}
	for name, corrupt := range map[string]string{
		"a field that is not known": `{"tooth": 1}`,
		"no blocks":                 `{"rows": [{"contest": {"ops": 1}}]}`,
		"a block without its other": `{"rows": [{"contest": {"ops": 1, "ours": {"blocks_ns": [1]}}}]}`,
		"blocks of nothing":         `{"rows": [{"contest": {"ours": {"blocks_ns": [1]}, "other": {"blocks_ns": [1]}}}]}`,
	} {
		if r, err := Decode([]byte(corrupt)); err == nil {
			t.Errorf("%s: read as %+v", name, r)
		}
	}
}

// TestRow guards what a row says about its values: their number, their spread, and
// an interval only if there are enough for one.
func TestRow(t *testing.T) {
	t.Parallel()
	c := Contest{Where: "here", What: "it", Op: "thing", Ops: 10, Ours: Side{Name: "holdfast"}, Other: Side{Name: "other"}}
	for _, ms := range []time.Duration{1, 2, 3, 4, 5, 6} {
		c.Ours.Blocks = append(c.Ours.Blocks, 10*time.Millisecond)
		c.Other.Blocks = append(c.Other.Blocks, ms*10*time.Millisecond)
	}
	for _, test := range []struct {
		row  Row
		want []string
	}{
		{Compare(c, AtLeast(2)), []string{"here: it, against other", "3.50x [1, 6] (1 to 6) of 6 pairs of blocks of 10; bar >= 2x: not short", "holdfast 1 ms, other 3.50 ms per thing"}},
		{Compare(c, AtMost(2)), []string{"0.29x [0.17, 1] (0.17 to 1) of 6 pairs"}},
		{Judge("n", "m", "5 rounds", Limit(5, " B"), []float64{1, 2, 3, 4, 5}), []string{"3 B (1 to 5) of 5 rounds; bar <= 5 B: reached"}},
		{Judge("n", "m", "one count", Limit(0, ""), []float64{1}), []string{"1 of one count; bar <= 0: SHORT"}},
	} {
		var b strings.Builder
		test.row.Print(&b)
		for _, want := range test.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q is not in\n%s", want, b.String())
			}
		}
	}
}

// TestDraw guards that the same data give the same bytes, that the output is well
// formed and names what was measured, and that Check finds whatever does not match
// the data.
func TestDraw(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Draw(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without data: %v", err)
	}
	stale := "before\n" + beginMark + "stale\n" + endMark + "after\n"
	write(figuresFile, "no marks\n")
	if err := example().Publish(root); err == nil || !strings.Contains(err.Error(), figuresFile) {
		t.Errorf("%s without the marks was taken: %v", figuresFile, err)
	}
	write(figuresFile, stale)
	if err := Check(root); err == nil {
		t.Error("nothing was drawn, and Check has no objection")
	}
	if err := example().Publish(root); err != nil {
		t.Fatal(err)
	}
	if err := Check(root); err != nil {
		t.Errorf("after Publish: %v", err)
	}

	setting := []string{"2001-02-03", "a machine", "4 CPUs", "R&D\u00a07"}
	for name, want := range map[string][]string{
		peersFile:   {"hand <-> off, against", "hand <-> off\n", "here", "there", "holdfast 300 µs", "other's 600 µs", "another 14 ms"},
		waitersFile: {"holdfast", "other's", "2", "20"},
	} {
		path := filepath.Join(root, name)
		texts := texts(t, path)
		for _, want := range append(want, setting...) {
			if !strings.Contains(texts, want) {
				t.Errorf("%s: no text %q", name, want)
			}
		}
		if strings.Contains(texts, "a rival") || strings.Contains(texts, "a sharer") {
			t.Errorf("%s has an election, or what is shared", name)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, figuresFile))
	if err != nil {
		t.Fatal(err)
	}
	s := string(text)
	for _, want := range append([]string{
		"(" + filepath.Base(peersFile) + ")", "(" + filepath.Base(waitersFile) + ")",
		"| here | hand <-> off | 300 µs | other's, 600 µs | 2 times its rate (2 to 2) | 3 pairs of blocks of 10 |",
		"| here | hand <-> off | 100 ms | a rival, 200 ms | 2 times its rate | 1 pairs of blocks of 10 |",
		"| here | hand <-> off | 100 ms | a sharer, 200 ms | 2 times its rate | 1 pairs of blocks of 10 |",
		"| a count, of things | 2 B (1 to 6) | <= 5 B | 3 rounds |",
		"before\n" + beginMark, endMark + "after\n", "load average was 1 before the run",
	}, setting...) {
		if !strings.Contains(s, want) {
			t.Errorf("%s: no %q in\n%s", figuresFile, want, s)
		}
	}
	if strings.Contains(s, "stale") {
		t.Errorf("%s: the old section is there:\n%s", figuresFile, s)
	}
	if strings.Index(s, "| here | hand <-> off | 800 µs") > strings.Index(s, "| there |") {
		t.Errorf("a place is in two parts:\n%s", s)
	}

	for name, corrupt := range map[string]string{
		peersFile: "<svg/>", waitersFile: "", figuresFile: strings.Replace(s, "300 µs", "299 µs", 1),
	} {
		write(name, corrupt)
		if err := Check(root); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not what was drawn, and Check says %v", name, err)
		}
		if err := Draw(root); err != nil {
			t.Fatal(err)
		}
		if err := Check(root); err != nil {
			t.Errorf("after Draw: %v", err)
		}
	}
}

// texts are all of a picture's, each on a line.
func texts(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if c, ok := token.(xml.CharData); ok {
			all.Write(c)
			all.WriteByte('\n')
		}
	}
}

// TestProcessor guards the published name of the machine.
func TestProcessor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cpuinfo, name string
		virtual       bool
	}{
		{"processor\t: 0\nmodel name\t: Fast: 3 GHz\nflags\t\t: fpu hypervisor lm\n", "Fast: 3 GHz", true},
		{"processor\t: 0\nmodel name\t: Fast\nflags\t\t: fpu hypervisors\n", "Fast", false},
		{"processor\t: 0\nFeatures\t: fp\n", "unknown processor", false},
		{"", "unknown processor", false},
	} {
		if name, virtual := processor(c.cpuinfo); name != c.name || virtual != c.virtual {
			t.Errorf("%q: %q, %v; want %q, %v", c.cpuinfo, name, virtual, c.name, c.virtual)
		}
	}
}
