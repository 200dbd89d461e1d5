package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// settings are shared by all commands.
type settings struct {
	engine    string
	lease     time.Duration
	timeout   time.Duration
	output    string
	verbose   bool
	engines   []engine
	given     []*pflag.Flag     // by flags and variables
	unflagged map[string]string // by the name of an engine: a variable of the engine that is set and has no flag
}

func (s *settings) addFlags(f *pflag.FlagSet) {
	for _, newEngine := range engines {
		s.engines = append(s.engines, newEngine())
	}
	s.unflagged = make(map[string]string)
	f.StringVar(&s.engine, "engine", "", fmt.Sprintf("%s; follows from %s", listed(s.engines, "or", about.choice),
		listed(s.engines, "or", func(b about) string { return "--" + b.means })))
	leases := listed(s.engines, "and", func(b about) string { return fmt.Sprintf("%v on %s", b.lease, b.name) })
	f.DurationVar(&s.lease, "lease", 0, "how long other clients wait for a silent holder (default "+leases+")")
	f.DurationVar(&s.timeout, "timeout", 15*time.Second, "how long to wait for a connection, and for each answer")
	f.StringVarP(&s.output, "output", "o", "text", "text or json")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "log the steps of the library to stderr")
	for _, e := range s.engines {
		name, own := e.about().name, newFlagSet()
		e.addFlags(own)
		own.VisitAll(func(flag *pflag.Flag) { flag.Annotations = map[string][]string{engineAnnotation: {name}} })
		f.AddFlagSet(own)
	}
	f.VisitAll(func(flag *pflag.Flag) {
		if flag != f.Lookup("verbose") {
			fromEnv(flag)
		}
	})
}

// completeChoices offers the values of settings with few values.
func (s *settings) completeChoices(root *cobra.Command) {
	choices := map[string][]string{"output": {"text", "json"}}
	for _, e := range s.engines {
		choices["engine"] = append(choices["engine"], e.about().choice())
		maps.Copy(choices, e.about().values)
	}
	for flag, values := range choices {
		_ = root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// Annotations of a flag: its environment variable, and its engine if it is for only one.
const (
	envAnnotation    = "holdfast_env"
	engineAnnotation = "holdfast_engine"
)

// fromEnv gives a flag an environment variable, such as HOLDFAST_AUTH_FILE for auth-file.
func fromEnv(flag *pflag.Flag) {
	variable := variableOf(flag.Name)
	flag.Usage = fmt.Sprintf("%s [$%s]", flag.Usage, variable)
	if flag.Annotations == nil {
		flag.Annotations = make(map[string][]string)
	}
	flag.Annotations[envAnnotation] = []string{variable}
}

func variableOf(flag string) string {
	return "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// readEnv sets each flag that was not given from its variable.
func (a *app) readEnv(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		names := flag.Annotations[envAnnotation]
		if err != nil || flag.Changed || len(names) == 0 {
			return
		}
		value, ok := a.lookupEnv(names[0])
		if !ok || value == "" {
			return
		}
		if e := flag.Value.Set(value); e != nil {
			err = usagef("%s: invalid value %q: %w", names[0], value, e)
		}
		flag.Changed = true
	})
	return err
}

// checkGiven refuses durations that are negative, and values that would silently mean the default: a duration of 0, except for --grace,
// and text that a script has left empty by mistake. --wait has messages of its own.
func (s *settings) checkGiven(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			s.given = append(s.given, flag)
		}
		d, _ := time.ParseDuration(flag.Value.String())
		switch {
		case err != nil || !flag.Changed:
		case flag.Value.Type() == "duration" && flag.Name != "wait" && (d < 0 || d == 0 && flag.Name != "grace"):
			err = usagef("--%s: %v is not positive; leave it out for the default", flag.Name, d)
		case slices.Contains([]string{"owner", "root", "command", "exec"}, flag.Name) && flag.Value.String() == "":
			err = usagef("--%s: it is empty; leave it out for the default", flag.Name)
		}
	})
	return err
}

// check refuses invalid settings before anything is sent.
func (s *settings) check() error {
	if s.output != "text" && s.output != "json" {
		return usagef("--output: %q is neither text nor json", s.output)
	}
	return nil
}
