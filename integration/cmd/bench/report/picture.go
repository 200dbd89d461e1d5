package report

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"regexp"
	"strconv"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// width is the width of all pictures: roughly that of a README on GitHub.
const width vg.Length = 620

// The pictures have a light background of their own, so that they look the same
// on light and dark pages.
var (
	ground = color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}
	ink    = color.NRGBA{R: 0x1f, G: 0x23, B: 0x28, A: 0xff}
	faint  = color.NRGBA{R: 0x59, G: 0x63, B: 0x6e, A: 0xff}
	rule   = color.NRGBA{R: 0xd8, G: 0xde, B: 0xe4, A: 0xff}
)

// The colours are distinguishable for colour-blind readers and in grey: Okabe
// and Ito, "Color Universal Design", 2008.
var colours = map[string]color.NRGBA{
	"holdfast":               {R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	"go-zookeeper's Lock":    {R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	"a bare create + delete": {R: 0x99, G: 0x99, B: 0x99, A: 0xff},
}

// otherColour is for sides without a colour of their own.
var otherColour = color.NRGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}

func colourOf(name string) color.NRGBA {
	if c, ok := colours[name]; ok {
		return c
	}
	return otherColour
}

// Viewers may lack the font used for measuring. The first three have the same
// widths; any other is stretched to fit (see fit).
const measuredFont, shownFonts = "font-family:Liberation Sans", "font-family:Arial,Helvetica,Liberation Sans,sans-serif"

// words is a style for text.
func words(size float64, c color.Color, bold bool) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: font.Length(size)}
	if bold {
		f.Weight = xfont.WeightBold
	}
	return text.Style{Color: c, Font: f, Handler: plot.DefaultTextHandler}
}

// picture makes a canvas with a title above and a description of the run below
// what draw adds.
func (r *Report) picture(height vg.Length, title, subtitle string, put func(draw.Canvas)) ([]byte, error) {
	const margin, head, foot = 12, 40, 30
	c := vgsvg.New(width, height+head+foot+2*margin)
	whole := draw.New(c)
	whole.SetColor(ground)
	whole.Fill(whole.Rectangle.Path())
	in := draw.Crop(whole, margin, -margin, margin, -margin)

	top := vg.Point{X: in.Min.X, Y: in.Max.Y}
	style := words(14, ink, true)
	style.YAlign = draw.YTop
	in.FillText(style, top, title)
	style = words(10.5, faint, false)
	style.YAlign = draw.YTop
	in.FillText(style, top.Add(vg.Point{Y: -20}), subtitle)
	style = words(9, faint, false)
	for i, line := range wrap(style, in.Max.X-in.Min.X, r.Setting()) {
		in.FillText(style, vg.Point{X: in.Min.X, Y: in.Min.Y + vg.Length(1-i)*12}, line)
	}
	put(draw.Crop(in, 0, 0, foot, -head))

	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(fit(out.Bytes()), []byte(measuredFont), []byte(shownFonts)), nil
}

// written is a text of an SVG: its style, its size and what it says.
var written = regexp.MustCompile(`(?s)<text ([^>]*?font-size:([0-9.]+)px[^>]*)>(.*?)</text>`)

// fit sets each text to its measured width, so that it neither overlaps its
// neighbour nor is cut off in a wider font.
func fit(svg []byte) []byte {
	return written.ReplaceAllFunc(svg, func(element []byte) []byte {
		m := written.FindSubmatch(element)
		size, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return element // the expression matches only numbers
		}
		wide := words(size, ink, bytes.Contains(m[1], []byte("font-weight:bold"))).Width(html.UnescapeString(string(m[3])))
		return fmt.Appendf(nil, `<text textLength="%.1f" lengthAdjust="spacingAndGlyphs" %s>%s</text>`, wide.Points(), m[1], m[3])
	})
}

// wrap cuts a text into lines, at its plain spaces.
func wrap(style text.Style, width vg.Length, s string) []string {
	var lines []string
	for word := range strings.SplitSeq(s, " ") {
		last := len(lines) - 1
		if last >= 0 && style.Width(lines[last]+" "+word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
