package engine

import (
	"flag"
	"io"
	"testing"
)

// cleanEnv takes away what the tester's environment says of engines.
func cleanEnv(t *testing.T, env map[string]string) {
	for _, name := range []string{
		"HOLDFAST_ENGINE", "ZOOKEEPER_SERVERS", "DYNAMODB_ENDPOINT",
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	} {
		t.Setenv(name, env[name])
	}
}

func TestFlags(t *testing.T) {
	aws := map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
	for _, test := range []struct {
		env  map[string]string
		args []string
		want string // Engine.Where; "" for an error
	}{
		{nil, nil, "the memory of this process"},
		{nil, []string{"-engine", "memory"}, "the memory of this process"},
		{nil, []string{"-engine", "zookeeper"}, "ZooKeeper at 127.0.0.1:2181"},
		{nil, []string{"-servers", "a:1,b:2"}, "ZooKeeper at a:1,b:2"},
		{nil, []string{"-endpoint", "http://a:1"}, `DynamoDB, table "holdfast" at http://a:1`},
		{nil, []string{"-endpoint", "http://a:1", "-table", "locks"}, `DynamoDB, table "locks" at http://a:1`},
		{aws, []string{"-table", "locks"}, `DynamoDB, table "locks" at AWS, region eu-west-1`},
		{nil, []string{"-engine", "dynamodb"}, ""}, // no credentials
		{nil, []string{"-engine", "memory", "-servers", "a:1"}, ""},
		{nil, []string{"-engine", "zookeeper", "-table", "locks"}, ""},
		{nil, []string{"-endpoint", "http://a:1", "-servers", "a:1"}, ""},
		{nil, []string{"-engine", "paper"}, ""},
		{nil, []string{"zookeeper"}, ""},

		{map[string]string{"HOLDFAST_ENGINE": "paper"}, nil, ""},
		{map[string]string{"HOLDFAST_ENGINE": "zookeeper", "ZOOKEEPER_SERVERS": "a:1"}, nil, "ZooKeeper at a:1"},
		{
			map[string]string{"HOLDFAST_ENGINE": "dynamodb", "DYNAMODB_ENDPOINT": "http://a:1"},
			nil, `DynamoDB, table "holdfast" at http://a:1`,
		},
		// That a server is known is no wish to use it.
		{map[string]string{"ZOOKEEPER_SERVERS": "a:1", "DYNAMODB_ENDPOINT": "http://a:1"}, nil, "the memory of this process"},
		// The command line outranks the environment.
		{map[string]string{"HOLDFAST_ENGINE": "dynamodb"}, []string{"-engine", "memory"}, "the memory of this process"},
		{map[string]string{"HOLDFAST_ENGINE": "dynamodb"}, []string{"-servers", "a:1"}, "ZooKeeper at a:1"},
	} {
		cleanEnv(t, test.env)
		set := flag.NewFlagSet("", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		flags := AddFlags(set)
		if err := set.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		engine, err := flags.Open()
		switch {
		case test.want == "" && err == nil:
			t.Errorf("%q %q: no error", test.env, test.args)
		case test.want != "" && err != nil:
			t.Errorf("%q %q: %v", test.env, test.args, err)
		case err == nil && engine.Where != test.want:
			t.Errorf("%q %q: %s, want %s", test.env, test.args, engine.Where, test.want)
		}
	}
}
