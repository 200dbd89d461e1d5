package screen

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestCut guards rows that are wider than the screen: characters of two columns,
// accents that take none, and as many of these as somebody likes.
func TestCut(t *testing.T) {
	zalgo := "a" + strings.Repeat("\u0301", 1000) + "b"
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 5, ""},
		{"abc", 5, "abc"},
		{"abcde", 5, "abcde"},
		{"abcdef", 5, "abcd…"},
		{"abcdef", 1, "…"},
		{"abcdef", 0, ""},
		{"abcdef", -1, ""},
		{"漢字漢字", 8, "漢字漢字"},
		{"漢字漢字", 7, "漢字漢…"},
		{"漢字漢字", 6, "漢字…"}, // five columns: half a character is none
		{"漢字", 1, "…"},
		{"a漢", 2, "a…"},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"🇩🇪🇫🇷", 4, "🇩🇪🇫🇷"},
		{"🇩🇪🇫🇷", 3, "🇩🇪…"},
		{zalgo, 2, "\uFFFDb"},
		{zalgo, 1, "…"},
	} {
		got := Cut(c.text, c.width)
		if got != c.want {
			t.Errorf("Cut(%.20q, %d) is %q, want %q", c.text, c.width, got, c.want)
		}
		if w := Width(got); w > max(0, c.width) {
			t.Errorf("Cut(%.20q, %d) takes %d columns", c.text, c.width, w)
		}
	}
}

// FuzzCut tests the same against all texts: the result fits, is a beginning of
// the text but for replaced characters, and is the text itself where that fits.
func FuzzCut(f *testing.F) {
	f.Add("worker-1", 5)
	f.Add("漢e\u0301\u200d🇩🇪", 3)
	f.Fuzz(func(t *testing.T, text string, width int) {
		width %= 300
		text = printable(text)
		got := Cut(text, width)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not valid UTF-8", got)
		}
		if w := Width(got); w > max(0, width) {
			t.Errorf("Cut(%q, %d) is %q, of %d columns", text, width, got, w)
		}
		if Width(text) <= width && got != text && !strings.ContainsRune(got, utf8.RuneError) {
			t.Errorf("Cut(%q, %d) is %q, and the text has %d columns", text, width, got, Width(text))
		}
	})
}

// TestPad guards columns of a table against characters that are not one column
// wide.
func TestPad(t *testing.T) {
	for text, want := range map[string]string{"": "    ", "ab": "ab  ", "漢": "漢  ", "e\u0301": "e\u0301   ", "abcde": "abcde"} {
		if got := Pad(text, 4); got != want {
			t.Errorf("Pad(%q, 4) is %q, want %q", text, got, want)
		}
	}
}
