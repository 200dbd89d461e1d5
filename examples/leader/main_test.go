package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

// The leader leaves, the next is cut off: one leads at a time, and the client is answered
// by each. It takes four leases of real time, as requests go over the network.
func TestHandovers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	if err := story(ctx, &teller{out: &out}, engine.MemoryWithLease(8*time.Second)); err != nil {
		t.Fatalf("%v after\n%s", err, out.String())
	}
	text := out.String()
	want := regexp.MustCompile(`(?s)request 1 is answered by (\w+), token 1, .*` +
		`is told to leave.*stops, token 1: context canceled.*has left.*is answered by \w+, token 2, .*` +
		`is cut off.*stops, token 2: .*expired.*is answered by \w+, token 3, .*` +
		`all \d+ requests were answered; the slowest took `)
	if !want.MatchString(text) {
		t.Errorf("not the story that was expected:\n%s", text)
	}
	leads := ""
	for _, line := range regexp.MustCompile(`(?m)^\S+ +\w+ +(leads|stops), token (\d+)`).FindAllStringSubmatch(text, -1) {
		switch what, token := line[1], line[2]; {
		case what == "leads" && leads == "":
			leads = token
		case what == "stops" && leads == token:
			leads = ""
		default:
			t.Errorf("token %s %s while token %q leads:\n%s", token, what, leads, text)
		}
	}
}
