package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/screen"
)

// complain prints why the program ends.
func (a *app) complain(ctx context.Context, err error) {
	var by interrupted
	if errors.As(context.Cause(ctx), &by) && errors.Is(err, context.Canceled) {
		err = by
	}
	var invalid *holdfast.InvalidError
	if errors.As(err, &invalid) {
		if flag, ok := flagOf[invalid.Field]; ok {
			err = fmt.Errorf("%s: %s", flag, invalid.Reason)
		}
	}
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		err = fmt.Errorf("there is no table %q in this region: \"holdfast table create\" makes it", a.set.dynamodb.table)
	}
	a.warn("%s", inWordsOfFlags(err.Error()))
}

// inWordsOfFlags replaces text that only makes sense to programmers.
func inWordsOfFlags(text string) string {
	// Instance roles are the last source of credentials that the SDK tries.
	if _, why, found := strings.Cut(text, "get credentials: "); found && strings.Contains(why, "EC2 IMDS") {
		return fmt.Sprintf("no AWS credentials: set AWS_ACCESS_KEY_ID, AWS_PROFILE or a role (%s)", why)
	}
	return strings.Replace(text, "another mode than FailClosed", "another mode than --mode fail-closed", 1)
}

// flagOf maps the library's names of settings to flags.
var flagOf = map[string]string{
	"servers":                     "--servers",
	"Options.SessionTimeout":      "--lease",
	"Options.Lease":               "--lease",
	"Options.TickTime":            "--tick-time",
	"Options.Root":                "--root",
	"Options.Table":               "--table",
	"Options.Poll":                "--poll",
	"Options.TTLAttribute":        "--ttl-attribute",
	"Options.Keys.Partition.Name": "--partition-key",
	"Options.Keys.Partition.Type": "--partition-key",
	"Options.Keys.Sort.Name":      "--sort-key",
	"Options.Keys.Sort.Type":      "--sort-key",
	"data":                        "--data",
}

// warn prints one line to stderr.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.err, "holdfast: %s\n", line(fmt.Sprintf(format, args...)))
}

// maxLine bounds the bytes of a message, which may quote foreign text.
const maxLine = 4096

// line turns a message into one printable line, whatever libraries and servers put into it.
func line(s string) string {
	s = cut(strings.TrimPrefix(s, "holdfast: "), maxLine) // the library's prefix
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' })
	return screen.Printable(strings.Join(parts, " "))
}

// plain makes foreign text safe for a terminal. It quotes text like a Go string if it is
// empty, not printable, or has quotes or backslashes. So no control character or change of
// writing direction gets through, and two texts never look the same.
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
