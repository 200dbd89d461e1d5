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

// settings are what all commands share.
type settings struct {
	engine    string
	lease     time.Duration
	timeout   time.Duration
	output    string
	verbose   bool
	zookeeper zooKeeper
	dynamodb  dynamoDB
	given     []*pflag.Flag // by flags and variables
}

func (s *settings) addFlags(f *pflag.FlagSet) {
	f.StringVar(&s.engine, "engine", "", "zookeeper or dynamodb; follows from --servers or --table")
	f.DurationVar(&s.lease, "lease", 0, "how long others wait for a silent holder; on ZooKeeper the session timeout (default 10s on ZooKeeper, 20s on DynamoDB)")
	f.DurationVar(&s.timeout, "timeout", 15*time.Second, "how long to wait for a connection, and for each answer")
	f.StringVarP(&s.output, "output", "o", "text", "text or json")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "log to stderr what the library does")
	for _, e := range []engine{&s.zookeeper, &s.dynamodb} {
		own := pflag.NewFlagSet(e.name(), pflag.ContinueOnError)
		own.SortFlags = false
		e.addFlags(own)
		own.VisitAll(func(flag *pflag.Flag) { flag.Annotations = map[string][]string{engineAnnotation: {e.name()}} })
		f.AddFlagSet(own)
	}
	f.VisitAll(func(flag *pflag.Flag) {
		if flag != f.Lookup("verbose") {
			fromEnv(flag)
		}
	})
}

// completeChoices offers the values of settings that have few.
func completeChoices(root *cobra.Command) {
	for flag, values := range map[string][]string{
		"engine": {"zookeeper", "dynamodb"},
		"output": {"text", "json"},
		"names":  slices.Sorted(maps.Keys(nameForms)),
		"acl":    {"open", "creator"},
		"mode":   slices.Sorted(maps.Keys(modes)),
	} {
		_ = root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// Annotations of a flag: its environment variable, and the only engine that it is for.
const (
	envAnnotation    = "holdfast_env"
	engineAnnotation = "holdfast_engine"
)

// fromEnv gives a flag an environment variable, such as HOLDFAST_AUTH_FILE for auth-file.
func fromEnv(flag *pflag.Flag) {
	variable := "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
	flag.Usage = fmt.Sprintf("%s [$%s]", flag.Usage, variable)
	if flag.Annotations == nil {
		flag.Annotations = make(map[string][]string)
	}
	flag.Annotations[envAnnotation] = []string{variable}
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

// checkGiven refuses values that would silently mean the default: a duration of 0, except for
// --grace and --wait, which has its own message, and text that a script has left empty by mistake.
func (s *settings) checkGiven(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			s.given = append(s.given, flag)
		}
		switch {
		case err != nil || !flag.Changed:
		case flag.Value.Type() == "duration" && flag.Value.String() == "0s" && flag.Name != "grace" && flag.Name != "wait":
			err = usagef("--%s: 0s is not positive; leave it out for the default", flag.Name)
		case slices.Contains([]string{"owner", "root", "command", "exec"}, flag.Name) && flag.Value.String() == "":
			err = usagef("--%s: it is empty; leave it out for the default", flag.Name)
		}
	})
	return err
}

// check refuses invalid settings before anything is sent.
func (s *settings) check() error {
	switch {
	case s.output != "text" && s.output != "json":
		return usagef("--output: %q is neither text nor json", s.output)
	case s.timeout <= 0:
		return usagef("--timeout: %v is not positive", s.timeout)
	case s.lease < 0:
		return usagef("--lease: %v is negative", s.lease)
	}
	return nil
}

// chosenEngine returns the engine that the settings mean, if that is clear, and none is for the other one.
func (s *settings) chosenEngine() (engine, error) {
	e, err := s.meantEngine()
	if err != nil {
		return nil, err
	}
	return e, s.checkFor(e)
}

// checkFor refuses settings that are for the other engine. Only what chooses one may be there for both, so that --engine can
// decide.
func (s *settings) checkFor(e engine) error {
	for _, flag := range s.given {
		other := flag.Annotations[engineAnnotation]
		if len(other) == 0 || other[0] == e.name() || flag.Name == "servers" || flag.Name == "table" {
			continue
		}
		name := "--" + flag.Name
		if variables := flag.Annotations[envAnnotation]; len(variables) > 0 {
			name += " ($" + variables[0] + ")"
		}
		return usagef("%s is for %s, and the engine is %s", name, other[0], e.name())
	}
	if s.zookeeper.auth != "" && e != engine(&s.zookeeper) {
		return usagef("$HOLDFAST_AUTH is for %s, and the engine is %s", s.zookeeper.name(), e.name())
	}
	return nil
}

func (s *settings) meantEngine() (engine, error) {
	switch {
	case s.engine == "zookeeper":
		return &s.zookeeper, nil
	case s.engine == "dynamodb":
		return &s.dynamodb, nil
	case s.engine != "":
		return nil, usagef("--engine: %q is neither zookeeper nor dynamodb", s.engine)
	case s.zookeeper.named() && s.dynamodb.named():
		return nil, usagef("both --servers and --table are set: say which by --engine")
	case s.zookeeper.named():
		return &s.zookeeper, nil
	case s.dynamodb.named():
		return &s.dynamodb, nil
	}
	return nil, usagef("which engine? Give --servers (HOLDFAST_SERVERS) for ZooKeeper, or --table (HOLDFAST_TABLE) for DynamoDB")
}
