package report

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes in a bar chart.
const (
	labelWidth vg.Length = 150 // left of the bars
	valueWidth vg.Length = 215 // right of the longest
	barHeight  vg.Length = 13
	pairHeight           = 2*barHeight + 12
	axisHeight vg.Length = 22
	headHeight vg.Length = 24
)

// peersPicture draws a bar for each side of each contest without waiters.
func (r *Report) peersPicture() ([]byte, error) {
	var panels []panel
	height := vg.Length(0)
	for _, row := range r.contests(false) {
		c := row.Contest
		if n := len(panels); n == 0 || panels[n-1].where != c.Where {
			panels = append(panels, panel{where: c.Where})
			height += headHeight + axisHeight
		}
		last := &panels[len(panels)-1]
		last.contests = append(last.contests, c)
		height += pairHeight
	}
	return r.picture(height, "One lock, acquired and released",
		"Median time of an operation, with its 95% interval. Shorter is better. Each pair was measured in blocks that took turns.",
		func(c draw.Canvas) {
			top := c.Max.Y
			for _, p := range panels {
				p.draw(c, top)
				top -= p.height()
			}
		})
}

// panel draws the contests of one place, on one scale.
type panel struct {
	where    string
	contests []*Contest
}

func (p panel) height() vg.Length {
	return headHeight + axisHeight + vg.Length(len(p.contests))*pairHeight
}

// name is the work, and the other side if needed to distinguish contests of
// the panel.
func (p panel) name(c *Contest) string {
	for _, another := range p.contests {
		if another != c && another.What == c.What {
			return c.What + ", against " + c.Other.Name
		}
	}
	return c.What
}

// longest is the end of the longest whisker.
func (p panel) longest() float64 {
	longest := 0.0
	for _, c := range p.contests {
		longest = max(longest, c.PerOp(c.Ours).High, c.PerOp(c.Other).High)
	}
	return longest
}

func (p panel) draw(c draw.Canvas, top vg.Length) {
	left, right := c.Min.X+labelWidth, c.Max.X-valueWidth
	longest := p.longest()
	x := func(ns float64) vg.Length { return left + vg.Length(ns/longest)*(right-left) }
	c.FillText(words(11, ink, true), vg.Point{X: c.Min.X, Y: top - 14}, p.where)
	top -= headHeight
	bottom := top - vg.Length(len(p.contests))*pairHeight

	tick := words(9, faint, false)
	tick.XAlign, tick.YAlign = draw.XCenter, draw.YTop
	for _, t := range (plot.DefaultTicks{}).Ticks(0, longest) {
		if t.IsMinor() || t.Value > longest {
			continue
		}
		c.StrokeLine2(draw.LineStyle{Color: rule, Width: 0.75}, x(t.Value), bottom, x(t.Value), top)
		c.FillText(tick, vg.Point{X: x(t.Value), Y: bottom - 3}, axisTime(t.Value))
	}
	for _, contest := range p.contests {
		label := words(10, ink, false)
		label.XAlign = draw.XRight
		lines := wrap(label, labelWidth-8, p.name(contest))
		for i, line := range lines {
			mid := top - pairHeight/2 - 3.5 + vg.Length(len(lines)-1)*6 - vg.Length(i)*12
			c.FillText(label, vg.Point{X: left - 8, Y: mid}, line)
		}
		at := top - 6 - barHeight
		for _, side := range []Side{contest.Ours, contest.Other} {
			drawBar(c, x, at, side.Name, contest.PerOp(side))
			at -= barHeight
		}
		top -= pairHeight
	}
	c.StrokeLine2(draw.LineStyle{Color: faint, Width: 1}, left, bottom, left, bottom+vg.Length(len(p.contests))*pairHeight)
}

// drawBar draws a bar with its whisker, its name and its figure.
func drawBar(c draw.Canvas, x func(float64) vg.Length, y vg.Length, name string, in Interval) {
	box := vg.Rectangle{Min: vg.Point{X: x(0), Y: y + 1}, Max: vg.Point{X: x(in.Median), Y: y + barHeight - 1}}
	c.SetColor(colourOf(name))
	c.Fill(box.Path())
	whisker := draw.LineStyle{Color: ink, Width: 0.9}
	mid := y + barHeight/2
	c.StrokeLine2(whisker, x(in.Low), mid, x(in.High), mid)
	for _, end := range []float64{in.Low, in.High} {
		c.StrokeLine2(whisker, x(end), mid-2.5, x(end), mid+2.5)
	}
	c.FillText(words(9.5, ink, name == "holdfast"), vg.Point{X: x(math.Max(in.Median, in.High)) + 6, Y: mid - 3.2}, name+" "+brief(in.Median))
}

// axisTime is a round time.
func axisTime(ns float64) string {
	if ns == 0 {
		return "0"
	}
	return brief(ns)
}
