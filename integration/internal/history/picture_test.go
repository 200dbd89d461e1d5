package history

import (
	"bytes"
	"strings"
	"testing"
)

// pictured is a history with something of all that a picture shows.
func pictured() *script {
	s := begin().breaks(1, 85, 95, OK).held("1.1", 1, 140, 150).lost("1.1", 1, 151, "broken").wrote("1.1", 1, 145, false).next()
	s.acquire("3.1", 3, 20, 180).held("3.1", 3, 190, 260).killed("3.1", 270)
	s.acquire("1.1", 4, 160, 240).held("1.1", 4, 250, 300).release("1.1", 4, 310, 320)
	s.add(0, Record{What: Started, Process: "3.1"}).add(290, Record{What: Started, Process: "3.2"}).add(0, Record{What: Started, Process: "10.1"})
	s.add(100, Record{What: Stopped, Process: "10.1"}).add(230, Record{What: Resumed, Process: "10.1"})
	s.add(60, Record{What: Begin, N: 1, Fault: "lost reply", Target: "client 1"}).add(130, Record{What: End, N: 1})
	s.add(70, Record{What: Begin, N: 2, Fault: "leader paused", Target: "server 2"}).add(200, Record{What: End, N: 2})
	s.add(268, Record{What: Begin, N: 3, Fault: "client killed", Target: "client 3"})
	return s.calm()
}

// TestPicture guards that a picture shows what its history has: holds, faults, stops, deaths, writes and the violation.
func TestPicture(t *testing.T) {
	s := pictured()
	found := Check(s.records, scriptRules)
	if len(found) != 1 || found[0].Rule != RuleExclusion {
		t.Fatalf("violations: %v", found)
	}
	var out bytes.Buffer
	if err := Picture(&out, s.records, scriptRules, found[0]); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"process 1.1", "process 10.1", "token 3", "token 4", "lost reply client 1", "leader paused server 2",
		"client killed", "stopped", "write with token 1, refused", "exclusion", "two holders from",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
}

// TestPictureOfAnOrder guards that it shows the order of the steps, where there is one.
func TestPictureOfAnOrder(t *testing.T) {
	s := begin().release("1.1", 1, 70, 90).next().calm()
	var out bytes.Buffer
	if err := Picture(&out, s.records, scriptRules, Violation{Rule: RuleLinearizable, Key: "k", To: 300}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"grant 1", "end 1", "grant 2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
}
