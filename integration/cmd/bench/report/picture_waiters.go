package report

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// waitersPicture draws a line per library.
func (r *Report) waitersPicture() ([]byte, error) {
	var lines []*line
	p := plot.New()
	ticks := plot.ConstantTicks{}
	grid := plotter.NewGrid()
	grid.Vertical.Width, grid.Horizontal = 0, draw.LineStyle{Color: rule, Width: 0.75}
	p.Add(grid)
	for _, row := range r.contests(true) {
		c := row.Contest
		for i, side := range []Side{c.Ours, c.Other} {
			if len(lines) <= i {
				lines = append(lines, &line{name: side.Name})
			}
			lines[i].add(c.Waiters, c.PerOp(side))
		}
		ticks = append(ticks, plot.Tick{Value: float64(c.Waiters), Label: fmt.Sprint(c.Waiters)})
	}
	greatest := 0.0
	for i, l := range lines {
		if err := l.plot(p, i); err != nil {
			return nil, err
		}
		greatest = max(greatest, l.greatest)
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks
	p.Y.Min, p.Y.Max = 0, greatest*1.25 // with room for the legend
	p.Y.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		all := plot.DefaultTicks{}.Ticks(low, high)
		for i := range all {
			if !all[i].IsMinor() {
				all[i].Label = axisTime(all[i].Value)
			}
		}
		return all
	})
	p.X.Label.Text = "waiters (logarithmic)"
	style(p)
	return r.picture(280, "One hand-off of a lock, by how many wait for it",
		"From a release to the next holder, on ZooKeeper: median time with its 95% interval. Lower is better.", p.Draw)
}

// style sets a plot's look.
func style(p *plot.Plot) {
	p.BackgroundColor = color.Transparent
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color = faint, faint
		small := words(9.5, faint, false)
		small.XAlign, small.YAlign = axis.Tick.Label.XAlign, axis.Tick.Label.YAlign
		axis.Tick.Label = small
		label := words(10, ink, false)
		label.XAlign, label.YAlign = axis.Label.TextStyle.XAlign, axis.Label.TextStyle.YAlign
		axis.Label.TextStyle = label
	}
	p.Legend.TextStyle = words(10.5, ink, false)
	p.Legend.ThumbnailWidth = 24
	p.Legend.Left = true // at the bottom, below all lines: times begin at 0
	p.Legend.XOffs, p.Legend.YOffs = 12, 8
	p.Legend.Padding = 3
}

// line is the hand-off times of one library.
type line struct {
	name     string
	greatest float64
	medians  plotter.XYs
	ends     plotter.YErrors // of the intervals, from the medians
}

func (l *line) add(waiters int, in Interval) {
	l.medians = append(l.medians, plotter.XY{X: float64(waiters), Y: in.Median})
	l.ends = append(l.ends, struct{ Low, High float64 }{in.Median - in.Low, in.High - in.Median})
	l.greatest = math.Max(l.greatest, in.High)
}

func (l *line) plot(p *plot.Plot, i int) error {
	drawn, points, err := plotter.NewLinePoints(l.medians)
	if err != nil {
		return err
	}
	whiskers, err := plotter.NewYErrorBars(struct {
		plotter.XYer
		plotter.YErrorer
	}{l.medians, l.ends})
	if err != nil {
		return err
	}
	c := colourOf(l.name)
	drawn.Width, drawn.Color = vg.Points(2), c
	points.Shape, points.Radius, points.Color = shapes[i%len(shapes)], vg.Points(3.5), c
	whiskers.Color, whiskers.CapWidth = c, vg.Points(6)
	p.Add(drawn, points, whiskers)
	p.Legend.Add(l.name, drawn, points)
	return nil
}

// shapes distinguish lines where colours cannot.
var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}}
