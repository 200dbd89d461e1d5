package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// nasty are texts that could harm a terminal, and some that could not.
var nasty = []string{
	"\x1b[31mred", "bell\a", "line\nbreak", "tab\there", "\u202eright to left", "\u009bC1", "\xff\xfe not UTF-8", "\x00", "zero\u200bwidth",
	"\U000e0001tag", "two  spaces", "", `"quoted"`, `back\slash`, "plain", "käse/日本", "👍",
}

// isPrintable reports whether a text is printable, apart from the newline at its end.
func isPrintable(s string) bool {
	return !strings.ContainsFunc(strings.TrimSuffix(s, "\n"), func(r rune) bool { return !unicode.IsPrint(r) })
}

// TestPlain checks that foreign text becomes harmless, and that no two texts look the same.
func TestPlain(t *testing.T) {
	seen := make(map[string]string)
	for _, s := range nasty {
		got := plain(s)
		if !isPrintable(got) || got == "" {
			t.Errorf("plain(%q) is %q", s, got)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("plain(%q) and plain(%q) are the same", s, other)
		}
		seen[got] = s
	}
	for _, s := range []string{"plain", "two  spaces", "käse/日本", "👍"} {
		if plain(s) != s {
			t.Errorf("plain(%q) is %q", s, plain(s))
		}
	}
}

// TestLine checks that any message becomes one line.
func TestLine(t *testing.T) {
	for _, s := range nasty {
		if got := line("error: " + s + "\n\tmore"); !isPrintable(got) {
			t.Errorf("line(%q) is %q", s, got)
		}
	}
	if got, want := line("holdfast: two\n\nlines  \"a  b\"\n"), `two lines  "a  b"`; got != want {
		t.Errorf("line gives %q, want %q", got, want)
	}
}

// TestJSON checks that JSON is safe on a terminal and loses nothing.
func TestJSON(t *testing.T) {
	for _, s := range nasty {
		var out bytes.Buffer
		a := &app{out: &out}
		info := holdfast.Info{Key: s, Held: true, Holder: holdfast.Holder{Owner: s, Data: []byte(s), Since: time.Unix(1, 0)}}
		if err := a.printJSON(newLockJSON(info)); err != nil {
			t.Fatal(err)
		}
		if !isPrintable(out.String()) || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("JSON with %q is %q", s, out.String())
		}
		var got lockJSON
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Errorf("JSON with %q: %v", s, err)
		}
		data := got.Data + string(got.DataBase64)
		if want := strings.ToValidUTF8(s, "\ufffd"); data != s || strings.ReplaceAll(got.Owner, "\ufffd\ufffd", "\ufffd") != want {
			t.Errorf("JSON with %q says %q and %q", s, got.Owner, data)
		}
	}
}

// failing is a writer that fails, as with a full disk.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestExitCode tests the exit status for each kind of error.
func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{usagef("bad"), 64},
		{fmt.Errorf("wrapped: %w", no("not there")), 1},
		{driver.Invalid("key", "it is empty"), 64},
		{&holdfast.HeldError{Key: "a"}, 75},
		{fmt.Errorf("x: %w", holdfast.ErrChanged), 1},
		{fmt.Errorf("x: %w", holdfast.ErrNames), 78},
		{holdfast.ErrDenied, 69},
		{holdfast.ErrDisconnected, 69},
		{errors.New("anything else"), 69},
		{&exitError{code: 7}, 7},
	} {
		if got := exitCode(t.Context(), test.err); got != test.want {
			t.Errorf("exitCode(%v) = %d, want %d", test.err, got, test.want)
		}
	}
	var stderr bytes.Buffer
	a := &app{out: failing{errors.New("disk full")}, err: &stderr, leaveSignals: func() {}, lookupEnv: noEnv}
	if got := a.main(t.Context(), []string{"version"}); got != exitFailed || stderr.String() != "holdfast: disk full\n" {
		t.Errorf("with a disk that is full: status %d, %q", got, stderr.String())
	}
}
