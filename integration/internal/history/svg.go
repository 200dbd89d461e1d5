package history

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
)

// A canvas collects the elements of an SVG picture, from the back to the front.
type canvas struct{ out bytes.Buffer }

// escape makes any text fit for an attribute or the content of an element; bytes that are no UTF-8 are replaced.
func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}

// rect draws a box. hint is what a viewer shows for it; style are further attributes.
func (c *canvas) rect(x, y, w, h float64, style, hint string) {
	fmt.Fprintf(&c.out, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" %s`, x, y, w, h, style)
	c.close("rect", hint)
}

func (c *canvas) line(x1, y1, x2, y2 float64, style string) {
	fmt.Fprintf(&c.out, `<line x1="%.2f" y1="%.2f" x2="%.2f" y2="%.2f" %s/>`+"\n", x1, y1, x2, y2, style)
}

func (c *canvas) circle(x, y, r float64, style, hint string) {
	fmt.Fprintf(&c.out, `<circle cx="%.2f" cy="%.2f" r="%.2f" %s`, x, y, r, style)
	c.close("circle", hint)
}

func (c *canvas) path(d, style, hint string) {
	fmt.Fprintf(&c.out, `<path d="%s" %s`, d, style)
	c.close("path", hint)
}

func (c *canvas) close(element, hint string) {
	if hint == "" {
		c.out.WriteString("/>\n")
		return
	}
	fmt.Fprintf(&c.out, "><title>%s</title></%s>\n", escape(hint), element)
}

func (c *canvas) text(x, y float64, style, s string) {
	fmt.Fprintf(&c.out, `<text x="%.2f" y="%.2f" %s>%s</text>`+"\n", x, y, style, escape(s))
}

// writeTo writes the whole picture.
func (c *canvas) writeTo(w io.Writer, width, height float64, title string) error {
	head := fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="12">
<title>%s</title>
<defs><pattern id="excused" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#ffffff" fill-opacity="0.55"/><line x1="0" y1="0" x2="0" y2="6" stroke="#000000" stroke-width="2"/></pattern></defs>
<rect width="%.0f" height="%.0f" fill="#ffffff"/>
`, width, height, width, height, escape(title), width, height)
	for _, part := range [][]byte{[]byte(head), c.out.Bytes(), []byte("</svg>\n")} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
