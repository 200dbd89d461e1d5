package main

import (
	"errors"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"

	"github.com/gopikchr/gopikchr"
)

// border is the space around a drawing, in pixels.
const border = 16

// draw makes an SVG of a source. Its first line is a comment with the title,
// which screen readers use.
//
// The background is opaque, so that a picture is legible on light and dark
// pages. The reader's sans-serif font may be a fifth wider than another, so
// sources leave room.
func draw(shared, text string) ([]byte, error) {
	title, ok := strings.CutPrefix(text, "# ")
	if !ok {
		return nil, errors.New(`the first line is not "# " and a title`)
	}
	title, _, _ = strings.Cut(title, "\n")
	out, _, _, err := gopikchr.Convert(shared+"\n"+text, gopikchr.WithPlaintextErrors())
	if err != nil {
		return nil, fmt.Errorf("pikchr: %s", strings.TrimSpace(out))
	}
	head := regexp.MustCompile(`^<svg [^>]*viewBox="0 0 ([0-9.]+) ([0-9.]+)">\n`).FindStringSubmatch(out)
	if head == nil {
		return nil, fmt.Errorf("pikchr gave no SVG: %.80q", out)
	}
	width, height := size(head[1]), size(head[2])
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="%d %d %[1]d %[2]d"`,
		width, height, -border, -border)
	svg.WriteString(` role="img" font-family="Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif" font-size="16">` + "\n")
	fmt.Fprintf(&svg, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprintf(&svg, `<rect x="%g" y="%[1]g" width="%d" height="%d" rx="8" fill="#ffffff" stroke="#d0d7de"/>`+"\n",
		0.5-border, width-1, height-1)
	drawing := strings.ReplaceAll(out[len(head[0]):], ` dominant-baseline="central"`, ` dy="0.35em"`) // not all know the first
	svg.WriteString(round(drawing))
	return []byte(svg.String()), nil
}

// size is a length of the drawing with its borders, in whole pixels.
func size(length string) int {
	f, err := strconv.ParseFloat(length, 64)
	if err != nil {
		return 0 // the expression matches only numbers
	}
	return int(f+0.5) + 2*border
}

var (
	tag  = regexp.MustCompile(`<[^>]*>`)
	long = regexp.MustCompile(`\d+\.\d{2,}`)
)

// round rounds the numbers of a drawing, except in its texts, to one decimal.
// More are invisible, and the last digits differ between processors.
func round(svg string) string {
	return tag.ReplaceAllStringFunc(svg, func(element string) string {
		return long.ReplaceAllStringFunc(element, func(number string) string {
			f, err := strconv.ParseFloat(number, 64)
			if err != nil {
				return number
			}
			return strconv.FormatFloat(f, 'f', 1, 64)
		})
	})
}
