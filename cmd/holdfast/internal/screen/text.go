// Package screen fills a terminal with rows of text, and restores the terminal afterwards.
//
// It needs only a dozen control sequences, which every terminal understands, because it shows one
// page of text that changes once a second. Bubble Tea would be shorter here, but it brings some
// fifteen modules. A program that uses it stops again after Ctrl-Z and "bg", and then not even
// SIGTERM ends it; and it reads Ctrl-C and Ctrl-\ as keys. Here they stay signals, so that they
// work even if this program hangs. (Hence not the raw mode of golang.org/x/term.)
package screen

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// A Row is one row of the screen. What does not fit is cut off, and characters that are
// not printable are replaced: only text reaches the terminal.
type Row struct {
	Text    string
	Bold    bool
	Reverse bool
}

// An Input comes from the user or the terminal. One field is set.
type Input struct {
	Key  byte  // a typed byte; some keys send several
	Lost error // the terminal is gone, or can no longer be read
}

// SuspendKey asks to suspend the program. It sends no signal while the screen is open,
// because Go cannot restore the default action of SIGTSTP once it has caught it.
const SuspendKey = 'Z' - '@'

// render returns what to send to a terminal of some width so that it shows rows in place
// of the rows shown, and the rows as it then shows them.
func render(rows, shown []Row, width int) (string, []Row) {
	var b strings.Builder
	now := make([]Row, max(len(rows), len(shown)))
	for i := range now {
		if i < len(rows) {
			now[i] = Row{Cut(Printable(rows[i].Text), width), rows[i].Bold, rows[i].Reverse}
		}
		row := now[i]
		if i < len(shown) && shown[i] == row {
			continue
		}
		// Erase first: with the cursor in the last column, erasing takes the character there.
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K", i+1)
		if row.Bold {
			b.WriteString("\x1b[1m")
		}
		if row.Reverse {
			b.WriteString("\x1b[7m")
		}
		b.WriteString(row.Text)
		if row.Bold || row.Reverse {
			b.WriteString("\x1b[0m")
		}
	}
	return b.String(), now[:len(rows)]
}

// ellipsis ends text that was cut off.
const ellipsis = "…"

// maxCluster bounds the bytes of one character with its accents, which may be many.
const maxCluster = 32

// Width is how many columns a text probably takes; terminals differ.
func Width(text string) int { return uniseg.StringWidth(text) }

// Cut shortens a text to a number of columns, with an ellipsis if anything is missing.
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
		if len(cluster) > maxCluster {
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

// Pad fills a text with spaces to a number of columns.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-Width(text)))
}

// Printable replaces all characters that are not printable.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
