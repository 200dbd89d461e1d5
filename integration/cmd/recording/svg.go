package main

import (
	"fmt"
	"html"
	"regexp"
	"strings"
)

// Sizes in the picture, in pixels. Each text has a fixed width, so that it fits
// any monospaced font.
const (
	cell   = 8  // width of a character
	line   = 18 // height of a row
	margin = 14 // around what a window shows, and between windows
	bar    = 24 // with a window's name
	width  = columns*cell + 2*margin
)

const head = `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">
<title>Two programs run under one lock. The first is killed; when its lease is over, the second is granted the lock, with a greater fencing token.</title>
<style>
text{fill:#d1d7e0;white-space:pre}
.b{font-weight:bold}
.r{fill:#0d1117}
.c{fill:#f0b72f}
.film{animation:film %.1fs steps(1,end) infinite}
@media (prefers-reduced-motion:reduce){.film{animation:none}}
@keyframes film{
`

// svg draws the film: all frames side by side, of which one is visible at a
// time. A row that stays or recurs is stored once. Without animation, the last
// frame is visible.
func (f *film) svg() []byte {
	height := margin + line
	for _, w := range f.windows {
		height += bar + w.rows*line + margin
	}
	last := len(f.frames) - 1
	length := f.length + interval
	var b strings.Builder
	fmt.Fprintf(&b, head, width, height, length.Seconds())
	for i, frame := range f.frames {
		fmt.Fprintf(&b, "%.2f%%{transform:translateX(%dpx)}\n", 100*frame.at.Seconds()/length.Seconds(), -i*width)
	}
	fmt.Fprintf(&b, "100%%{transform:translateX(%dpx)}\n}\n</style>\n", -last*width)

	fmt.Fprintf(&b, `<rect x="0.5" y="0.5" width="%d" height="%d" rx="8" fill="#0d1117" stroke="#6e7681"/>`+"\n", width-1, height-1)
	var tops []int // of all rows
	top := 0
	for _, w := range f.windows {
		fmt.Fprintf(&b, `<rect x="1" y="%d" width="%d" height="%d" rx="7" fill="#21262d"/>`, top+1, width-2, bar-2)
		b.WriteString(text(margin, top+17, "b", w.name) + "\n")
		top += bar + margin/2
		for range w.rows {
			tops = append(tops, top)
			top += line
		}
		top += margin / 2
	}
	tops = append(tops, top+margin/4)

	ids := make(map[string]int)
	var rows, frames strings.Builder
	for i, frame := range f.frames {
		fmt.Fprintf(&frames, `<g transform="translate(%d)">`, i*width)
		for j, row := range append(frame.rows, "\x1b[33m"+frame.caption) {
			drawn := drawRow(row)
			if drawn == "" {
				continue
			}
			if _, ok := ids[drawn]; !ok {
				ids[drawn] = len(ids)
				fmt.Fprintf(&rows, "<g id=\"r%d\">%s</g>\n", ids[drawn], drawn)
			}
			fmt.Fprintf(&frames, `<use href="#r%d" y="%d"/>`, ids[drawn], tops[j])
		}
		frames.WriteString("</g>\n")
	}
	fmt.Fprintf(&b, "<defs>\n%s</defs>\n", rows.String())
	fmt.Fprintf(&b, `<svg width="%d" height="%d"><g class="film" transform="translate(%d)">`+"\n%s</g></svg>\n</svg>\n", width, height, -last*width, frames.String())
	return []byte(b.String())
}

// graphics matches control sequences that set the style of what follows.
var graphics = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// drawRow draws a row of a terminal, each part in its style.
func drawRow(row string) string {
	var b strings.Builder
	bold, reverse, captioned := false, false, false
	column := 0
	part := func(s string) {
		width := len([]rune(s))
		defer func() { column += width }()
		shown := strings.TrimLeft(s, " ")
		x := margin + cell*(column+width-len([]rune(shown)))
		class := ""
		switch {
		case reverse:
			fmt.Fprintf(&b, `<rect x="%d" width="%d" height="%d" fill="#d1d7e0"/>`, margin+cell*column, cell*width, line)
			class = "r"
		case captioned:
			class = "c"
		}
		if bold {
			class = strings.TrimSpace(class + " b")
		}
		if shown = strings.TrimRight(shown, " "); shown != "" {
			b.WriteString(text(x, 13, class, shown))
		}
	}
	at := 0
	for _, m := range graphics.FindAllStringSubmatchIndex(row, -1) {
		part(row[at:m[0]])
		at = m[1]
		for code := range strings.SplitSeq(row[m[2]:m[3]], ";") {
			switch code {
			case "", "0":
				bold, reverse, captioned = false, false, false
			case "1":
				bold = true
			case "7":
				reverse = true
			case "33":
				captioned = true
			}
		}
	}
	part(row[at:])
	return b.String()
}

// text is one, as wide as in a terminal.
func text(x, y int, class, s string) string {
	if class != "" {
		class = ` class="` + class + `"`
	}
	return fmt.Sprintf(`<text x="%d" y="%d" textLength="%d" lengthAdjust="spacingAndGlyphs"%s>%s</text>`,
		x, y, cell*len([]rune(s)), class, html.EscapeString(s))
}
