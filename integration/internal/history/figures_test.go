package history

import (
	"strings"
	"testing"
)

// TestFigures guards the figures of a history that was counted by hand, and how they are printed.
func TestFigures(t *testing.T) {
	s := pictured().call("10.1", Try, 0, 280, 285, Refused).call("10.1", Verify, 0, 290, 0, "").jump("10.1", -5, 291, 292).
		lead("3.1", 3, 185, 0).observe("10.1", 1, 300, 10, 1, 85, 0)
	for i, token := range []uint64{1, 2, 1, 3, 2} {
		s.add(400+int64(i), Record{What: Wrote, Process: "1.1", Token: token})
	}
	var out strings.Builder
	if err := Count(s.records).Write(&out); err != nil {
		t.Fatal(err)
	}
	const want = `
records    62 in 900ms
processes  3 started, 1 killed; one was paused 1 times
acquire    4: ok 4
try        1: refused 1
verify     3: ok 2, no return 1
release    2: ok 2
break      1: ok 1
lead       1: no return 1
observe    1: closed 1
jump       1: ok 1
faults     3: client killed 1, leader paused 1, lost reply 1
grants     4
holds      4, with 12 stamps; the longest was 130ms
terms      1 of the holds
shared     0 of the holds, 0 of them permits
told       2 states, to observers
losses     1: broken 1
wait       160ms at most until a grant
fenced     2 writes accepted, 1 refused
unfenced   5 writes, 2 of them went back
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got:%s\nwant:%s", got, want)
	}
}
