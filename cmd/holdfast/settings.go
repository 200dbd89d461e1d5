package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// settings are what all commands have in common.
type settings struct {
	engine    string
	lease     time.Duration
	timeout   time.Duration
	output    string
	verbose   bool
	zookeeper zooKeeper
	dynamodb  dynamoDB
}

const (
	outputText = "text"
	outputJSON = "json"
)

func (s *settings) addFlags(f *pflag.FlagSet) {
	f.StringVar(&s.engine, "engine", "", "zookeeper or dynamodb; follows from --servers or --table")
	f.DurationVar(&s.lease, "lease", 0, "how long others wait for a silent holder; on ZooKeeper the session timeout (default 10s on ZooKeeper, 20s on DynamoDB)")
	f.DurationVar(&s.timeout, "timeout", 15*time.Second, "how long to wait for a connection, and for each answer")
	f.StringVarP(&s.output, "output", "o", outputText, "text or json")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "log to stderr what the library does")
	s.zookeeper.addFlags(f)
	s.dynamodb.addFlags(f)
	f.VisitAll(func(flag *pflag.Flag) {
		if flag != f.Lookup("verbose") {
			fromEnv(flag)
		}
	})
}

// envAnnotation has the name of the variable that stands in for a flag.
const envAnnotation = "holdfast_env"

// fromEnv lets a flag that is not given take its value from a variable, such as
// HOLDFAST_AUTH_FILE for auth-file.
func fromEnv(flag *pflag.Flag) {
	variable := "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
	flag.Usage = fmt.Sprintf("%s [$%s]", flag.Usage, variable)
	flag.Annotations = map[string][]string{envAnnotation: {variable}}
}

// readEnv gives each flag that was not given the value of its variable.
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

// checkGiven refuses what was given and would mean the same as nothing: no duration
// is 0, but for a grace (--wait has a message of its own), and what a script has left empty by mistake is no default.
func checkGiven(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		switch {
		case err != nil || !flag.Changed:
		case flag.Value.Type() == "duration" && flag.Value.String() == "0s" && flag.Name != "grace" && flag.Name != "wait":
			err = usagef("--%s: 0s is not positive; leave it out for the default", flag.Name)
		case slices.Contains([]string{"owner", "root", "command"}, flag.Name) && flag.Value.String() == "":
			err = usagef("--%s: it is empty; leave it out for the default", flag.Name)
		}
	})
	return err
}

// check refuses what makes no sense before anything is sent.
func (s *settings) check() error {
	switch {
	case s.output != outputText && s.output != outputJSON:
		return usagef("--output: %q is neither text nor json", s.output)
	case s.timeout <= 0:
		return usagef("--timeout: %v is not positive", s.timeout)
	case s.lease < 0:
		return usagef("--lease: %v is negative", s.lease)
	}
	return nil
}

// chosenEngine says which engine is meant, and refuses settings from which it
// cannot be told.
func (s *settings) chosenEngine() (engine, error) {
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
