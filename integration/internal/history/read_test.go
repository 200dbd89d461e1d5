package history

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRead guards that records come back as they were written, from files and from what cannot seek, lines longer than a buffer
// and a last line without an end included.
func TestRead(t *testing.T) {
	want := append(pictured().records, Record{At: 5, What: Return, Note: strings.Repeat("long ", 40_000), TTL: 7, Reclaim: true})
	var lines bytes.Buffer
	for _, r := range want {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(line)
		lines.WriteString("\n\n")
	}
	lines.WriteString(`{"at":9,"what":"calm"}`)
	for i := range want { // what is no UTF-8 does not survive JSON
		want[i].Target = strings.ToValidUTF8(want[i].Target, "\ufffd")
	}
	want = append(want, Record{At: 9, What: Calm})
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, r := range map[string]io.Reader{"a file": file, "a stream": io.MultiReader(&lines)} {
		got, err := Read(r)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("from %s: %d records, %v; want the %d that were written", name, len(got), err, len(want))
		}
	}
}

// TestReadNoRecord guards that a damaged history is not taken for a shorter one.
func TestReadNoRecord(t *testing.T) {
	_, err := Read(strings.NewReader("{\"at\":1}\n\n{\"at\":2,\"wh"))
	if err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("got %v, want an error that names line 3", err)
	}
}

// TestFigures guards the figures of a history that was counted by hand, and how they are printed.
func TestFigures(t *testing.T) {
	s := pictured().call("10.1", Try, 0, 280, 285, Refused).call("10.1", Verify, 0, 290, 0, "").jump("10.1", -5, 291, 292)
	for i, token := range []uint64{1, 2, 1, 3, 2} {
		s.add(400+int64(i), Record{What: Wrote, Process: "1.1", Token: token})
	}
	var out strings.Builder
	if err := Count(s.records).Write(&out); err != nil {
		t.Fatal(err)
	}
	const want = `
records    57 in 900ms
processes  3 started, 1 killed; one was paused 1 times
acquire    4: ok 4
try        1: refused 1
verify     3: ok 2, no return 1
release    2: ok 2
break      1: ok 1
jump       1: ok 1
faults     3: client killed 1, leader paused 1, lost reply 1
grants     4
holds      4, with 12 stamps; the longest was 130ms
losses     1: ErrBroken 1
wait       160ms at most until a grant
fenced     2 writes accepted, 1 refused
unfenced   5 writes, 2 of them went back
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got:%s\nwant:%s", got, want)
	}
}
