package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Sizes, in pixels.
const (
	width   = 1280.0
	margin  = 14.0
	gutter  = 104.0 // for the names of processes
	laneH   = 18.0
	rowGap  = 8.0
	faultH  = 17.0
	letter  = 6.6 // about as wide as one of 11 px is
	plot    = width - gutter - 2*margin
	barH    = 12.0
	minMark = 2.0 // narrower than this nobody sees it
)

// palette has the colours of Okabe and Ito that can be told apart by the colour-blind, those that text can be read on first.
var palette = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#666666"}

type picture struct {
	canvas

	s       *story
	v       Violation
	marked  bool // v is a violation, and not just a time
	colours map[string]string
	y       float64 // how far it is drawn
}

// head is the verdict, and what the colours and signs stand for.
func (p *picture) head(keys []string) {
	if p.marked {
		for _, text := range wrap(p.v.String(), 165) {
			p.y += 17
			p.text(margin, p.y, `font-size="13" font-weight="bold"`, text)
		}
	}
	p.y += 14
	x := margin
	sign := func(label string, draw func(x, y float64)) {
		w := 24 + letter*float64(len([]rune(label))) + 14
		if x+w > width-margin {
			x, p.y = margin, p.y+18
		}
		draw(x, p.y)
		p.text(x+24, p.y+9, `font-size="11"`, label)
		x += w
	}
	for _, key := range keys {
		sign("key "+key, func(x, y float64) {
			p.rect(x, y, 18, 10, fmt.Sprintf(`fill="%s"`, p.colours[key]), "")
		})
	}
	sign("waiting, or between the call and the first look", func(x, y float64) {
		p.line(x, y+5, x+18, y+5, fmt.Sprintf(`stroke="%s" stroke-width="2" stroke-dasharray="3 2"`, palette[0]))
	})
	sign("waited in vain", func(x, y float64) {
		p.line(x, y+5, x+16, y+5, fmt.Sprintf(`stroke="%s" stroke-width="2" stroke-dasharray="3 2"`, palette[0]))
		p.circle(x+16, y+5, 2.2, fmt.Sprintf(`fill="#ffffff" stroke="%s" stroke-width="1.4"`, palette[0]), "")
	})
	sign("held, but excused", func(x, y float64) {
		p.rect(x, y, 18, 10, fmt.Sprintf(`fill="%s"`, palette[0]), "")
		p.rect(x, y, 18, 10, `fill="url(#excused)"`, "")
	})
	sign("broken or reclaimed", func(x, y float64) { p.strikeMark(x+9, y+2, "") })
	sign("write accepted", func(x, y float64) { p.writeMark(x+9, y+5, true, "") })
	sign("write refused by the fence", func(x, y float64) { p.writeMark(x+9, y+5, false, "") })
	sign("process stopped", func(x, y float64) { p.rect(x, y, 18, 10, `fill="#bdbdbd"`, "") })
	sign("process killed", func(x, y float64) { p.cross(x+9, y+5, "") })
	sign("fault", func(x, y float64) { p.rect(x, y, 18, 10, faultStyle, "") })
	if p.marked {
		sign("the violation", func(x, y float64) { p.rect(x, y, 18, 10, violationStyle, "") })
	}
	p.y += 24
}

const (
	faultStyle     = `fill="#f4c7a1" stroke="#b35900" stroke-width="0.8"`
	violationStyle = `class="violation" fill="#ffdd00" fill-opacity="0.45" stroke="#c00000" stroke-width="1"`
)

// A scale maps the time of a panel to the width of the picture.
type scale struct{ from, to int64 }

func (sc scale) x(t int64) float64 {
	t = min(max(t, sc.from), sc.to)
	return margin + gutter + plot*float64(t-sc.from)/float64(sc.to-sc.from)
}

// length is how much time a width stands for.
func (sc scale) length(w float64) int64 { return int64(w / plot * float64(sc.to-sc.from)) }

// panel draws what happened in a time.
func (p *picture) panel(from, to int64, title string) {
	sc := scale{from, to}
	if title != "" {
		p.y += 16
		p.text(margin, p.y, `font-size="13" font-weight="bold"`, title)
		p.y += 10
	}
	faults := p.s.faultsOf(from, to)
	lanes := 0
	if len(faults) > 0 {
		lanes = pack(faults, func(b bar) (from, to int64) {
			text := sc.length(labelWidth(b.label) + 8)
			if sc.labelBefore(b) {
				return b.from - text, b.to
			}
			return b.from, max(b.to, max(b.from, sc.from)+text)
		})
	}
	rows := p.s.rowsOf(from, to)
	top := p.y + 14
	height := float64(lanes)*faultH + 6
	for _, r := range rows {
		height += float64(r.lanes)*laneH + rowGap
	}
	p.axis(sc, top, height)
	if p.marked {
		left, right := sc.x(p.v.From), sc.x(p.v.To)
		if right-left < minMark {
			left, right = left-minMark/2, left+minMark/2
		}
		p.rect(left, top-2, right-left, height+4, violationStyle, p.v.Text)
	}
	y := top
	if lanes > 0 {
		p.text(margin, y+12, `font-size="11" fill="#7a3d00"`, "faults")
	}
	for _, f := range faults {
		p.fault(f, sc, y+float64(f.lane)*faultH)
	}
	y += float64(lanes)*faultH + 6
	slot := ""
	for _, r := range rows {
		if now, _, _ := strings.Cut(r.process, "."); now != slot {
			p.line(margin, y, width-margin, y, `stroke="#888888" stroke-width="0.7"`)
			slot = now
		}
		p.row(r, sc, y+rowGap/2)
		y += float64(r.lanes)*laneH + rowGap
	}
	p.y = top + height + 22
}

// axis draws times, in seconds since the start of the history, and the moment when the faults were over.
func (p *picture) axis(sc scale, top, height float64) {
	seconds := float64(sc.to-sc.from) / 1e9
	unit := math.Pow(10, math.Floor(math.Log10(seconds/8)))
	for _, f := range []float64{1, 2, 5, 10} {
		if seconds/(f*unit) <= 12 {
			unit *= f
			break
		}
	}
	digits := max(0, int(-math.Floor(math.Log10(unit)+1e-9)))
	begin := float64(sc.from-p.s.start) / 1e9
	for i := math.Ceil(begin / unit); i*unit <= begin+seconds; i++ {
		x := sc.x(p.s.start + int64(i*unit*1e9))
		p.line(x, top, x, top+height, `stroke="#dddddd" stroke-width="0.8"`)
		anchor := "middle"
		if x > width-margin-3*letter {
			x, anchor = width-margin, "end"
		}
		p.text(x, top+height+13, `font-size="11" fill="#333333" text-anchor="`+anchor+`"`, fmt.Sprintf("%.*f s", digits, i*unit))
	}
	if p.s.calm >= sc.from && p.s.calm <= sc.to {
		x := sc.x(p.s.calm)
		p.line(x, top-8, x, top+height, `stroke="#009e73" stroke-width="1.2" stroke-dasharray="5 3"`)
		p.text(x+3, top-2, `font-size="11" fill="#00664a"`, "calm")
	}
}

func labelWidth(s string) float64 { return letter * float64(len([]rune(s))) }

// labelBefore reports whether the label of a fault would leave the picture if it began where the fault does.
func (sc scale) labelBefore(f bar) bool { return sc.x(f.from)+4+labelWidth(f.label) > width-margin }

func (p *picture) fault(f bar, sc scale, y float64) {
	left, right := sc.x(f.from), sc.x(f.to)
	p.rect(left, y, max(minMark, right-left), faultH-4, `class="fault" `+faultStyle, f.hint)
	if sc.labelBefore(f) {
		p.text(left-4, y+10, `font-size="11" fill="#5c2e00" text-anchor="end"`, f.label)
		return
	}
	p.text(left+4, y+10, `font-size="11" fill="#5c2e00"`, f.label)
}

func (p *picture) row(r *row, sc scale, y float64) {
	height := float64(r.lanes) * laneH
	weight := ""
	if p.marked && slices.Contains(p.v.Processes, r.process) {
		weight = ` font-weight="bold"`
	}
	p.text(margin, y+13, `font-size="12"`+weight, clip(r.process, 14))
	for _, b := range r.paused {
		p.rect(sc.x(b.from), y, max(minMark, sc.x(b.to)-sc.x(b.from)), height, `class="paused" fill="#bdbdbd" fill-opacity="0.75"`, b.hint)
	}
	if r.begins <= sc.to && r.ends >= sc.from {
		p.line(sc.x(r.begins), y+height, sc.x(r.ends), y+height, `stroke="#999999" stroke-width="0.6"`)
	}
	if r.begins > sc.from {
		p.line(sc.x(r.begins), y, sc.x(r.begins), y+height, `stroke="#555555" stroke-width="1.2"`)
	}
	for _, b := range r.bars {
		p.hold(b, sc, y+float64(b.lane)*laneH+2)
	}
	for _, w := range r.writes {
		x := sc.x(w.At)
		p.writeMark(x, y+height-2.5, w.Accepted, fmt.Sprintf("write to key %q with token %d at %s", w.Key, w.Token, p.s.at(w.At)))
	}
	if r.killed {
		p.cross(sc.x(r.ends), y+height/2, fmt.Sprintf("%s killed at %s", r.process, p.s.at(r.ends)))
	}
}

// hold draws one grant: a dashed line until it is held, a bar while it is, hatched while that is excused.
func (p *picture) hold(b bar, sc scale, y float64) {
	g, colour := b.g, p.colours[b.key]
	p.line(sc.x(b.from), y+barH/2, sc.x(b.to), y+barH/2, fmt.Sprintf(`stroke="%s" stroke-width="2" stroke-dasharray="3 2"`, cmp.Or(colour, "#666666")))
	if g == nil { // it ended in vain
		if b.to >= sc.from && b.to <= sc.to {
			p.circle(sc.x(b.to), y+barH/2, 2.2, fmt.Sprintf(`class="vain" fill="#ffffff" stroke="%s" stroke-width="1.4"`, cmp.Or(colour, "#666666")), b.hint)
		}
		return
	}
	if g.ret >= sc.from && g.ret <= sc.to {
		p.line(sc.x(g.ret), y+1, sc.x(g.ret), y+barH-1, fmt.Sprintf(`stroke="%s" stroke-width="1.6"`, colour))
	}
	if g.held && g.first <= sc.to && g.last >= sc.from {
		left, right := sc.x(g.first), sc.x(g.last)
		p.rect(left, y, max(minMark, right-left), barH, fmt.Sprintf(`class="hold" fill="%s"`, colour), b.hint)
		if from, to, ok := p.s.excuse(g); ok && from <= sc.to && to >= sc.from {
			p.rect(sc.x(from), y, max(minMark, sc.x(to)-sc.x(from)), barH, `class="excused" fill="url(#excused)"`, b.hint)
		}
		if letter*float64(len(b.label))+4 < right-left {
			text := "#ffffff"
			if slices.Contains([]string{"#e69f00", "#56b4e9", "#f0e442", "#cc79a7"}, colour) {
				text = "#000000"
			}
			p.text(left+3, y+10, fmt.Sprintf(`font-size="10" fill="%s"`, text), b.label)
		}
	}
	for _, hit := range g.strikes {
		if hit.from >= sc.from && hit.from <= min(sc.to, b.to) {
			p.strikeMark(sc.x(hit.from), y-3, hit.what+" at "+p.s.at(hit.from))
		}
	}
}

// excuse is the part of a hold that is excused.
func (s *story) excuse(g *grant) (from, to int64, ok bool) {
	told := int64(never)
	if next := s.after(g); next != nil {
		told = next.ret
	}
	for _, hit := range g.strikes {
		if hit.from < g.last {
			return max(hit.from, g.first), min(s.believes(hit, told), g.last), true
		}
	}
	return 0, 0, false
}

// after returns the next grant of the key, or nil.
func (s *story) after(g *grant) *grant {
	for _, next := range s.keys[g.key] {
		if next.token > g.token {
			return next
		}
	}
	return nil
}

func (p *picture) strikeMark(x, y float64, hint string) {
	p.path(fmt.Sprintf("M%.2f %.2f h8 l-4 7 z", x-4, y), `class="strike" fill="#c00000" stroke="#ffffff" stroke-width="0.6"`, hint)
}

func (p *picture) writeMark(x, y float64, accepted bool, hint string) {
	if accepted {
		p.circle(x, y, 1.8, `fill="#000000"`, hint)
		return
	}
	p.circle(x, y, 2.6, `class="refused" fill="#ffffff" stroke="#c00000" stroke-width="1.3"`, hint)
}

func (p *picture) cross(x, y float64, hint string) {
	p.path(fmt.Sprintf("M%.2f %.2f l10 10 m0 -10 l-10 10", x-5, y-5), `class="killed" fill="none" stroke="#c00000" stroke-width="2.4"`, hint)
}

// wrap breaks a text into lines, between words where it can.
func wrap(text string, most int) []string {
	var lines []string
	runes := []rune(text)
	for len(runes) > most {
		at := most
		for i := most; i > most/2; i-- {
			if runes[i] == ' ' {
				at = i
				break
			}
		}
		lines = append(lines, string(runes[:at]))
		runes = []rune(strings.TrimLeft(string(runes[at:]), " "))
	}
	return append(lines, string(runes))
}

// clip shortens a name that would run into the picture.
func clip(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}
