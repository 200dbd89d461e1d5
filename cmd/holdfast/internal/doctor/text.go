package doctor

import (
	"fmt"
	"strings"
	"time"
)

// some lists the first few of many.
func some(all []string) string {
	const few = 3
	if len(all) <= few {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:few], ", "), len(all)-few)
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// figure rounds a duration to what is worth reading.
func figure(d time.Duration) time.Duration {
	switch {
	case d < time.Millisecond && d > -time.Millisecond:
		return d.Round(time.Microsecond)
	case d < time.Second && d > -time.Second:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// shell quotes a word for a command that the user may copy.
func shell(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,@%+=", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
