package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// texts are a picture's texts, in brackets if bold and between bars if reversed. The
// test fails if the picture is not well-formed, or if another font could widen a
// text.
func texts(t *testing.T, svg string) string {
	t.Helper()
	var b strings.Builder
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "text" {
			var element struct {
				Class  string `xml:"class,attr"`
				Length int    `xml:"textLength,attr"`
				Text   string `xml:",chardata"`
			}
			if err := d.DecodeElement(&element, &e); err != nil {
				t.Fatal(err)
			}
			if want := cell * len([]rune(element.Text)); element.Length != want {
				t.Errorf("%q is %d wide, want %d", element.Text, element.Length, want)
			}
			b.WriteString(map[string]string{"": " ", "b": " bold:", "r": " reverse:", "r b": " both:", "c": " caption:"}[element.Class] + element.Text + "\n")
		}
	}
}

// TestSVG guards that a film stores each row once, shows it in its place and style,
// and shows each frame from its moment on.
func TestSVG(t *testing.T) {
	f := &film{
		windows: []window{{"one", 2}, {"two", 1}},
		frames: []frame{
			{0, []string{"$ a <b", "", "stays"}, "first"},
			{time.Second, []string{"$ a <b", "\x1b[1mbold\x1b[0m  \x1b[7mback\x1b[1m both\x1b[0m", "stays"}, "second"},
		},
		length: 2*time.Second - interval,
	}
	svg := string(f.svg())
	got := texts(t, svg)
	for _, want := range []string{" bold:one\n", " bold:two\n", " $ a <b\n", " stays\n", " bold:bold\n", " reverse:back\n", " both:both\n", " caption:first\n", " caption:second\n"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q does not occur exactly once in\n%s", want, got)
		}
	}
	for _, want := range []string{"film 2.0s", "\n0.00%{transform:translateX(0px)}", "\n50.00%{transform:translateX(-764px)}", "\n100%{transform:translateX(-764px)}"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
}

// TestRecorded guards that the recording in the repository shows the whole story,
// and is small enough for a page.
func TestRecorded(t *testing.T) {
	svg, err := os.ReadFile("../../../docs/takeover.svg")
	if err != nil {
		t.Fatal(err)
	}
	if len(svg) > 100_000 {
		t.Errorf("it has %d bytes", len(svg))
	}
	got := texts(t, string(svg))
	rest := got
	for _, want := range []string{"run reports/nightly --owner web1", "wrote page 1 with token", "run reports/nightly --owner web2", "held by web1", "Killed", "wrote page 1 with token"} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is missing or out of order in\n%s", want, got)
		}
		rest = after
	}
}
