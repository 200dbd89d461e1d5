package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The checked-in pictures match their sources.
func TestPictures(t *testing.T) {
	if err := run("../../docs/pictures", true); err != nil {
		t.Error(err)
	}
}

// A picture is well-formed, has a title and an opaque background, and is the
// same each time.
func TestDraw(t *testing.T) {
	const shared, text = "$paper = 0xffffff", "# A & <B>\nbox \"0.125\" fill $paper at (0.123456, 0)\narrow\n"
	svg, err := draw(shared, text)
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for _, want := range []string{"<title>A &amp; &lt;B&gt;</title>", `fill="#ffffff"`, ">0.125</text>"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("%q is missing in\n%s", want, svg)
		}
	}
	if found := long.FindString(strings.ReplaceAll(string(svg), ">0.125<", "><")); found != "" {
		t.Errorf("the number %s is finer than an eye in\n%s", found, svg)
	}
	if again, err := draw(shared, text); err != nil || string(again) != string(svg) {
		t.Errorf("the second time, it is (%v)\n%s\nand was\n%s", err, again, svg)
	}
}

// A check finds what is missing, out of date, or without a source, and changes
// nothing; a run without it puts all but the last right.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says := func(check bool, want ...string) {
		t.Helper()
		text := fmt.Sprint(run(dir, check))
		if lines := strings.Count(text, "\n") + 1; text == "<nil>" && len(want) > 0 || text != "<nil>" && lines != len(want) {
			t.Errorf("check %v: %q, want %d findings", check, text, len(want))
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("check %v: %q, want something with %q", check, text, w)
			}
		}
	}
	write(style, "thickness = 0.01\n")
	write("a.pikchr", "# A\nbox\n")
	write("b.pikchr", "# B\nbox\n")
	says(true, "a.svg", "b.svg")
	if _, err := os.Stat(filepath.Join(dir, "a.svg")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a check has drawn: %v", err)
	}
	says(false)
	says(true)
	write("b.svg", "<svg/>")
	write("c.svg", "<svg/>")
	says(true, "b.svg", "c.svg has no source")
	says(false, "c.svg has no source")
	says(true, "c.svg has no source")
	write(style, "thickness = 0.02\n")
	says(true, "a.svg", "b.svg", "c.svg has no source")
}
