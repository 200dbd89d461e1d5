package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
)

// engines makes the engines that the program knows, in the order of the help. A further engine has a line here, and nothing else outside
// its own file.
var engines = []func() engine{
	func() engine { return new(zooKeeper) },
	func() engine { return new(dynamoDB) },
	func() engine { return new(mongoDB) },
}

// An engine keeps locks, and has its own settings.
type engine interface {
	about() about
	addFlags(f *pflag.FlagSet)
	// readEnv reads settings without a flag, and returns the variable that was set, or "".
	readEnv(lookup func(string) (string, bool)) string
	named() bool // whether the flag that means this engine is set
	connect(ctx context.Context, a *app, o connectOptions) (*client, error)
	// doctor returns the examination of the locks with a prefix. It sends nothing.
	doctor(ctx context.Context, a *app, prefix string) (func(context.Context, func(doctor.Finding) error) error, error)
	// explain words an error for users of flags, who do not know the library. It returns "" if the error is clear.
	explain(err error) string
	// commands returns the commands that only this engine has.
	commands(a *app) []*cobra.Command
}

// about describes an engine to the commands.
type about struct {
	name   string        // as its makers write it
	means  string        // the flag that means this engine if it is set
	lease  time.Duration // the default of --lease
	values map[string][]string
	fields map[string]string // flags, by the library's names of settings
}

// choice is the engine's name for --engine.
func (b about) choice() string { return strings.ToLower(b.name) }

// client is a connection to an engine.
type client struct {
	*holdfast.Client
	breakNow func(context.Context, holdfast.Info) error // Break where it frees the key at once

	lease  func() time.Duration  // how long the engine waits for this client while it is silent
	places <-chan holdfast.Event // the latest Started or Queued
}

// connectOptions are for commands with special needs.
type connectOptions struct {
	owner   string  // "": host:pid:random
	holds   *window // lease and margin, if a command is to run
	onEvent func(holdfast.Event)
}

// chosenEngine returns the engine that the settings mean. It refuses settings that are ambiguous or for another engine.
func (s *settings) chosenEngine() (engine, error) {
	e, err := s.meantEngine()
	if err != nil {
		return nil, err
	}
	return e, s.checkFor(e)
}

func (s *settings) meantEngine() (engine, error) {
	var named []engine
	for _, e := range s.engines {
		switch {
		case s.engine != "" && s.engine == e.about().choice():
			return e, nil
		case e.named():
			named = append(named, e)
		}
	}
	switch {
	case s.engine != "":
		return nil, usagef("--engine: %q: want %s", s.engine, listed(s.engines, "or", about.choice))
	case len(named) > 1:
		return nil, usagef("%s are set: say which by --engine", listed(named, "and", func(b about) string { return "--" + b.means }))
	case len(named) == 0:
		return nil, usagef("which engine? Give %s", listed(s.engines, "or", func(b about) string {
			return "--" + b.means + " (" + variableOf(b.means) + ") for " + b.name
		}))
	}
	return named[0], nil
}

// checkFor refuses settings that are for another engine. Only the flags that choose an engine may be set for several, so that --engine
// decides.
func (s *settings) checkFor(e engine) error {
	chosen := e.about()
	for _, other := range s.engines {
		its := other.about()
		if its.name == chosen.name {
			continue
		}
		for _, flag := range s.given {
			if flag.Name == its.means || !isFor(flag, its.name) {
				continue
			}
			name := "--" + flag.Name
			if variables := flag.Annotations[envAnnotation]; len(variables) > 0 {
				name += " ($" + variables[0] + ")"
			}
			return usagef("%s is for %s, and the engine is %s", name, its.name, chosen.name)
		}
		if variable := s.unflagged[its.name]; variable != "" {
			return usagef("$%s is for %s, and the engine is %s", variable, its.name, chosen.name)
		}
	}
	return nil
}

// isFor reports whether a flag is for one engine only, and for this one.
func isFor(flag *pflag.Flag, name string) bool {
	only := flag.Annotations[engineAnnotation]
	return len(only) > 0 && only[0] == name
}

// listed lists a property of each engine: "a, b or c".
func listed(engines []engine, last string, say func(about) string) string {
	var b strings.Builder
	for i, e := range engines {
		switch {
		case i > 0 && i == len(engines)-1:
			b.WriteString(" " + last + " ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(say(e.about()))
	}
	return b.String()
}
