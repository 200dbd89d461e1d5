package screen

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestRender checks that only changed rows are sent, and that they are cut to the width.
func TestRender(t *testing.T) {
	const at1, at2, at3 = "\x1b[1;1H\x1b[2K", "\x1b[2;1H\x1b[2K", "\x1b[3;1H\x1b[2K"
	one, three := Row{Text: "one"}, Row{Text: "three", Reverse: true}
	var shown []Row
	for _, step := range []struct {
		rows []Row
		want string
	}{
		{[]Row{one, {Text: "two", Bold: true}, three}, at1 + "one" + at2 + "\x1b[1mtwo\x1b[0m" + at3 + "\x1b[7mthree\x1b[0m"},
		{[]Row{one, {Text: "two"}, three}, at2 + "two"},
		{[]Row{{Text: "longer than the screen"}}, at1 + "longer th…" + at2 + at3},
	} {
		var got string
		if got, shown = render(step.rows, shown, 10); got != step.want || len(shown) != len(step.rows) {
			t.Errorf("for %+v it sends %q, want %q", step.rows, got, step.want)
		}
	}
}

// sequence matches what render may send apart from text.
var sequence = regexp.MustCompile(`\x1b\[(\d+;1H|2K|1m|7m|0m)`)

// TestNothingButText checks that no control character in a row reaches the terminal.
func TestNothingButText(t *testing.T) {
	for _, text := range []string{
		"\x1b[31mred", "\x1b]0;title\x07", "\u009b31m", "a\nb\r\tc\b", "\x00", "\x7f", "\xff\x9b31m", "\u202eabc", "\u2066a", "\u200b", "\ufeff",
	} {
		all, _ := render([]Row{{Text: text}, {Text: "end"}}, nil, 80)
		sent := sequence.ReplaceAllString(all, "")
		if strings.ContainsFunc(sent, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.HasSuffix(sent, "end") {
			t.Errorf("for %q it sends %q", text, sent)
		}
	}
}

// TestCut tests text that is wider than the screen: characters of two columns, accents
// that take none, and any number of accents.
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
		{"漢字漢字", 6, "漢字…"}, // five columns: half a character does not exist
		{"漢字", 1, "…"},
		{"a漢", 2, "a…"},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"🇩🇪🇫🇷", 4, "🇩🇪🇫🇷"},
		{"🇩🇪🇫🇷", 3, "🇩🇪…"},
		{zalgo, 2, "\uFFFDb"},
		{zalgo, 1, "…"},
	} {
		if got := Cut(c.text, c.width); got != c.want || Width(got) > max(0, c.width) {
			t.Errorf("Cut(%.20q, %d) is %q, of %d columns; want %q", c.text, c.width, got, Width(got), c.want)
		}
	}
}

// FuzzCut checks that the result fits, is valid, and is the text itself if that fits into at least one column.
func FuzzCut(f *testing.F) {
	f.Add("\u0354", 0)
	f.Add("worker-1", 5)
	f.Add("漢e\u0301\u200d🇩🇪", 3)
	f.Fuzz(func(t *testing.T, text string, width int) {
		width %= 300
		text = Printable(text)
		got := Cut(text, width)
		if !utf8.ValidString(got) || Width(got) > max(0, width) {
			t.Errorf("Cut(%q, %d) is %q, of %d columns", text, width, got, Width(got))
		}
		if width > 0 && Width(text) <= width && got != text && !strings.ContainsRune(got, utf8.RuneError) {
			t.Errorf("Cut(%q, %d) is %q, and the text has %d columns", text, width, got, Width(text))
		}
	})
}
