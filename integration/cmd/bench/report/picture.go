package report

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Sizes in pixels. The reader's sans-serif font may be a fifth wider than another, so all texts have room.
const (
	width      = 640 // roughly that of a README on GitHub
	margin     = 12
	labelsEnd  = 170 // left of the bars
	barsEnd    = 410 // of the longest
	barHeight  = 13
	pairHeight = 2*barHeight + 12
	panelHead  = 24 // with the place
	panelAxis  = 22
)

// The pictures have a light background of their own, so that they look the same on light and dark pages. The colours of the
// sides are distinguishable for colour-blind readers and in grey: Okabe and Ito, "Color Universal Design", 2008.
const ink, faint, rule = "#1f2328", "#59636e", "#d8dee4"

var sideColours = []string{"#0072b2", "#e69f00", "#999999", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442"}

// chart is a picture under way. Its texts and shapes are appended from top to bottom.
type chart struct {
	svg   strings.Builder
	sides []string // in the order of the report, ours first
	y     float64
}

// chart draws a bar for each side of some contests, in a panel per place, and says below on what the run was made.
func (r *Report) chart(title, subtitle string, rows []Row) []byte {
	c := &chart{sides: []string{"holdfast"}, y: margin}
	for _, row := range r.Rows {
		if row.Contest != nil && row.Contest.kind() < shared && !slices.Contains(c.sides, row.Contest.Other.Name) {
			c.sides = append(c.sides, row.Contest.Other.Name)
		}
	}
	c.text(margin, c.y+14, 14, ink, "bold", title)
	c.text(margin, c.y+32, 10.5, faint, "", subtitle)
	c.y += 44
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Contest.Where == rows[0].Contest.Where {
			n++
		}
		c.panel(rows[:n])
		rows = rows[n:]
	}
	for _, line := range wrap(115, r.Setting()) {
		c.y += 12
		c.text(margin, c.y, 9, faint, "", line)
	}
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" role="img" `+
		`font-family="Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif">
<title>%s</title>
<rect width="100%%" height="100%%" fill="#ffffff"/>
`, width, c.y+margin, html.EscapeString(title))
	return []byte(head + c.svg.String() + "</svg>\n")
}

// panel draws the contests of one place, on one scale.
func (c *chart) panel(rows []Row) {
	longest := 0.0
	names := map[string]int{}
	for _, row := range rows {
		longest = max(longest, row.Contest.PerOp(row.Contest.Ours).High, row.Contest.PerOp(row.Contest.Other).High)
		names[row.Contest.What]++
	}
	x := func(ns float64) float64 { return labelsEnd + ns/longest*(barsEnd-labelsEnd) }
	c.text(margin, c.y+14, 11, ink, "bold", rows[0].Contest.Where)
	c.y += panelHead
	bottom := c.y + float64(len(rows))*pairHeight
	step := tick(longest)
	for t := 0.0; t <= longest; t += step {
		c.line(x(t), c.y, x(t), bottom, rule)
		c.text(x(t), bottom+12, 9, faint, "middle", strings.TrimPrefix(brief(t), "0 µs"))
	}
	c.line(labelsEnd, c.y, labelsEnd, bottom, faint)
	for _, row := range rows {
		contest := row.Contest
		name := contest.What
		if names[name] > 1 {
			name += ", against " + contest.Other.Name
		}
		label := wrap(24, name)
		for i, line := range label {
			c.text(labelsEnd-8, c.y+pairHeight/2+4+12*(float64(i)-float64(len(label)-1)/2), 10, ink, "end", line)
		}
		for i, side := range []Side{contest.Ours, contest.Other} {
			c.bar(x, c.y+6+float64(i)*barHeight, side.Name, contest.PerOp(side))
		}
		c.y += pairHeight
	}
	c.y += panelAxis
}

// bar draws a bar with its whisker, its name and its figure.
func (c *chart) bar(x func(float64) float64, top float64, name string, in Interval) {
	colour := sideColours[slices.Index(c.sides, name)%len(sideColours)]
	fmt.Fprintf(&c.svg, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", x(0), top+1, x(in.Median)-x(0), barHeight-2, colour)
	mid := top + barHeight/2.0
	c.line(x(in.Low), mid, x(in.High), mid, ink)
	for _, end := range []float64{in.Low, in.High} {
		c.line(x(end), mid-2.5, x(end), mid+2.5, ink)
	}
	weight := ""
	if name == c.sides[0] {
		weight = "bold"
	}
	c.text(x(in.High)+6, mid+3.2, 9.5, ink, weight, name+" "+brief(in.Median))
}

// text writes a text, whose style is bold, or that it is anchored by its middle or its end.
func (c *chart) text(x, y, size float64, colour, style, s string) {
	switch style {
	case "bold":
		style = ` font-weight="bold"`
	case "middle", "end":
		style = ` text-anchor="` + style + `"`
	}
	fmt.Fprintf(&c.svg, `<text x="%.1f" y="%.1f" font-size="%g" fill="%s"%s>%s</text>`+"\n", x, y, size, colour, style, html.EscapeString(s))
}

func (c *chart) line(x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(&c.svg, `<path d="M%.1f %.1fL%.1f %.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
}

// tick is a round distance, of which an axis has two to five.
func tick(longest float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(longest)))
	switch n := longest / step; {
	case n < 2:
		return step / 2
	case n < 5:
		return step
	}
	return 2 * step
}

// wrap cuts a text into lines of at most so many characters, at its plain spaces.
func wrap(most int, s string) []string {
	var lines []string
	for word := range strings.SplitSeq(s, " ") {
		last := len(lines) - 1
		if last >= 0 && len(lines[last])+1+len(word) <= most {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
