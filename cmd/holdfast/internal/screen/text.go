package screen

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// ellipsis ends what was cut off.
const ellipsis = "…"

// mostMarks bounds the bytes of one character with its accents, of which there
// may otherwise be any number.
const mostMarks = 32

// Width is how many columns a text takes, as far as can be told: terminals
// differ.
func Width(text string) int { return uniseg.StringWidth(text) }

// Cut returns as much of the beginning of a text as fits into a number of
// columns, with an ellipsis if that is not all of it.
func Cut(text string, width int) string {
	if width <= 0 {
		return ""
	}
	var b strings.Builder
	used, fits := 0, 0 // columns; bytes that leave room for the ellipsis
	for rest, state := text, -1; rest != ""; {
		var cluster string
		var columns int
		cluster, rest, columns, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if len(cluster) > mostMarks {
			cluster, columns = string(unicode.ReplacementChar), 1
		}
		if used += columns; used > width {
			return b.String()[:fits] + ellipsis
		}
		b.WriteString(cluster)
		if used < width {
			fits = b.Len()
		}
	}
	return b.String()
}

// Pad fills a text up with spaces to a number of columns.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-Width(text)))
}

// printable replaces characters that are not text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
