package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/holdfast-go/holdfast"
)

// complain prints why the program ends.
func (a *app) complain(ctx context.Context, err error) {
	var by interrupted
	if errors.As(context.Cause(ctx), &by) && errors.Is(err, context.Canceled) {
		err = by
	}
	var invalid *holdfast.InvalidError
	if errors.As(err, &invalid) {
		if flag := a.set.flagOf(invalid.Field); flag != "" {
			err = fmt.Errorf("%s: %s", flag, invalid.Reason)
		}
	}
	text := err.Error()
	for _, e := range a.set.engines {
		if said := e.explain(err); said != "" {
			text = said
		}
	}
	a.warn("%s", text)
}

// flagOf returns the flag for one of the library's names of settings; "" if there is none.
func (s *settings) flagOf(field string) string {
	if field == "data" {
		return "--data"
	}
	e, err := s.meantEngine()
	if err != nil {
		return ""
	}
	return e.about().fields[field]
}

// warn prints one line to stderr.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(stderr{a}, "holdfast: %s\n", line(fmt.Sprintf(format, args...)))
}

// maxLine bounds the bytes of a message, which may quote foreign text.
const maxLine = 4096

// line turns a message, which may have foreign text, into one printable line.
func line(s string) string {
	s = cut(strings.TrimPrefix(s, "holdfast: "), maxLine) // the library's prefix
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' })
	return printable(strings.Join(parts, " "))
}

// plain makes foreign text safe for a terminal. It quotes text like a Go string if it is empty, not printable, or has quotes or
// backslashes. So no control character or change of writing direction gets through, and two texts never look the same.
func plain(s string) string {
	quoted := strconv.Quote(s)
	if s != "" && quoted[1:len(quoted)-1] == s {
		return s
	}
	return quoted
}

// cut shortens a text to some bytes, and says so.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + fmt.Sprintf("… (%d bytes)", len(s))
}

// printable replaces all characters that are not printable.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
