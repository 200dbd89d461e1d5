package main

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
)

// told are the variables that describe a key to a command.
var told = []string{"HOLDFAST_KEY", "HOLDFAST_OWNER", "HOLDFAST_TOKEN", "HOLDFAST_HELD", "HOLDFAST_STALE", "HOLDFAST_DATA"}

// environment is this program's environment and the variables of a command, without those of an outer holdfast. Empty values count as
// none.
func environment(tell map[string]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.ContainsFunc(told, func(ours string) bool { return name == ours || strings.HasPrefix(name, ours+"_") })
	})
	for _, name := range slices.Sorted(maps.Keys(tell)) {
		if value := tell[name]; value != "" && !strings.Contains(value, "\x00") { // the system refuses NUL
			env = append(env, name+"="+value)
		}
	}
	return env
}

// shell returns the command that runs a script.
func shell(script string) []string {
	return []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh"), "-c", script}
}
