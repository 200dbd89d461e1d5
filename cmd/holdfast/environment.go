package main

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
)

// told are the variables by which this program tells a command of a key.
var told = []string{"HOLDFAST_KEY", "HOLDFAST_OWNER", "HOLDFAST_TOKEN", "HOLDFAST_HELD", "HOLDFAST_STALE", "HOLDFAST_DATA"}

// environment is this program's environment and what a command is told. An outer holdfast's
// variables do not show through. Empty values count as none.
func environment(tell map[string]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.ContainsFunc(told, func(ours string) bool { return name == ours || strings.HasPrefix(name, ours+"_") })
	})
	for _, name := range slices.Sorted(maps.Keys(tell)) {
		if value := tell[name]; value != "" && !strings.Contains(value, "\x00") { // which the system would refuse
			env = append(env, name+"="+value)
		}
	}
	return env
}

// shell is the command that runs a script.
func shell(script string) []string {
	return []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh"), "-c", script}
}
