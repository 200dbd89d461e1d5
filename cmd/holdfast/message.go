package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// inWordsOfFlags replaces what only a programmer can make use of.
func inWordsOfFlags(text string) string {
	// Instance roles are the last place in which the SDK looks for credentials.
	if _, why, found := strings.Cut(text, "get credentials: "); found && strings.Contains(why, "EC2 IMDS") {
		return fmt.Sprintf("no AWS credentials: set AWS_ACCESS_KEY_ID, AWS_PROFILE or a role (%s)", why)
	}
	return strings.Replace(text, "another mode than FailClosed", "another mode than --mode fail-closed", 1)
}

// flagOf has the flags behind the library's names for what it refuses.
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

// mostLine bounds a message in bytes. What others have written may be in it.
const mostLine = 4096

// line makes one line of a message, whatever is in it: what libraries and
// servers put into their errors may have several, and control characters.
func line(s string) string {
	s = cut(strings.TrimPrefix(s, "holdfast: "), mostLine) // the library says it, too
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' })
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.Join(parts, " "))
}

// plain returns foreign text for a terminal: as it is if all of it is printable
// and it is not empty, and otherwise quoted like a Go string. So no control
// character and no change of the writing direction gets through, and what is
// printed in quotes is not taken for the text itself.
func plain(s string) string {
	quoted := strconv.Quote(s)
	if s != "" && quoted[1:len(quoted)-1] == s {
		return s
	}
	return quoted
}

// cut returns the beginning of a text that is longer than some bytes, and says so.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + fmt.Sprintf("… (%d bytes)", len(s))
}
