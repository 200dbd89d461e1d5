package history

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
)

// pictured is a history with something of all that a timeline shows.
func pictured() *script {
	s := begin().breaks(1, 85, 95, OK).held("1.1", 1, 140, 150).lost("1.1", 1, 151, "ErrBroken").wrote("1.1", 1, 145, false).next()
	s.acquire("3.1", 3, 20, 180).held("3.1", 3, 190, 260).killed("3.1", 270)
	s.acquire("1.1", 4, 160, 240).held("1.1", 4, 250, 300).release("1.1", 4, 310, 320)
	s.add(0, Record{What: Started, Process: "3.1"}).add(290, Record{What: Started, Process: "3.2"}).add(0, Record{What: Started, Process: "10.1"})
	s.add(100, Record{What: Stopped, Process: "10.1"}).add(230, Record{What: Resumed, Process: "10.1"})
	s.add(60, Record{What: Begin, N: 1, Fault: "lost reply", Target: "client 1"}).add(130, Record{What: End, N: 1})
	s.add(70, Record{What: Begin, N: 2, Fault: "leader paused", Target: "server <2> & \"others\" \xff"}).add(200, Record{What: End, N: 2})
	s.add(268, Record{What: Begin, N: 3, Fault: "client killed", Target: "client 3"})
	return s.calm()
}

// An element is one of a picture.
type element struct {
	name  string
	attrs map[string]string
	text  string
}

// parse reads a picture as XML, strictly.
func parse(t *testing.T, picture []byte) []*element {
	t.Helper()
	var list, open []*element
	d := xml.NewDecoder(bytes.NewReader(picture))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attrs: map[string]string{}}
			for _, a := range token.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			list, open = append(list, e), append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].text += string(token)
			}
		}
	}
}

// A place is where a box is, from left to right.
type place struct{ left, right string }

// hint returns the place of the first box of a class whose hint contains a text.
func hint(elements []*element, class, text string) place {
	for i, e := range elements {
		if e.attrs["class"] == class && i+1 < len(elements) && elements[i+1].name == "title" && strings.Contains(elements[i+1].text, text) {
			x, _ := strconv.ParseFloat(e.attrs["x"], 64)
			w, _ := strconv.ParseFloat(e.attrs["width"], 64)
			return place{fmt.Sprintf("%.1f", x), fmt.Sprintf("%.1f", x+w)}
		}
	}
	return place{}
}

// TestTimeline guards that a picture shows what its history has: holds, their excuses, faults, stops, deaths, and the violation.
func TestTimeline(t *testing.T) {
	s := pictured()
	found := Check(s.records, scriptRules)
	if len(found) != 1 || found[0].Rule != RuleExclusion {
		t.Fatalf("violations: %v", found)
	}
	var out bytes.Buffer
	if err := Timeline(&out, s.records, scriptRules, found[0]); err != nil {
		t.Fatal(err)
	}
	elements := parse(t, out.Bytes())
	count := map[string]int{}
	var texts []string
	for _, e := range elements {
		count[e.attrs["class"]]++
		texts = append(texts, e.text)
	}
	// What is magnified is there twice; the violation is explained as well.
	for class, want := range map[string]int{"hold": 6, "excused": 1, "fault": 4, "paused": 2, "violation": 3, "killed": 3, "refused": 2} {
		if count[class] != want {
			t.Errorf("%d elements of class %s, want %d", count[class], class, want)
		}
	}
	// The first bars are those of the panel that shows all: 3.1's from 190 to 260, 1.1's from 250 on. The mark is where both are.
	one, two, mark := hint(elements, "hold", "token 3"), hint(elements, "hold", "token 4"), hint(elements, "violation", "two holders")
	if mark.left != two.left || mark.right != one.right || mark.left >= mark.right {
		t.Errorf("the violation is marked at %v, the holds are at %v and %v", mark, one, two)
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{"1.1", "10.1", "lost reply: client 1", `leader paused: server <2> & "others"`, "key k", "two holders from"} {
		if !strings.Contains(all, want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
	if strings.Index(all, "\n10.1\n") < strings.Index(all, "\n3.2\n") {
		t.Error("process 10.1 comes before process 3.2")
	}
}
