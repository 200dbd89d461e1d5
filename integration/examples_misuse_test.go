package integration_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// misusedExamples end with one line that explains why.
func misusedExamples(t *testing.T, all examples) {
	absent := nowhere(t)
	every := slices.Collect(maps.Keys(exampleTests))
	tests := make(map[string]func(*testing.T))
	for name, test := range map[string]struct {
		programs []string
		env      []string
		args     string
		says     string
	}{
		"flags of two engines":     {every, nil, "-servers a:1 -endpoint http://a:1", `^-servers has no meaning with -endpoint\n$`},
		"a flag of another engine": {every, nil, "-engine zookeeper -table locks", `^-table has no meaning with -engine zookeeper\n$`},
		"an unknown engine":        {every, nil, "-engine paper", `^no engine "paper": there are memory, zookeeper and dynamodb\n$`},
		"by the environment":       {every, []string{"HOLDFAST_ENGINE=paper"}, "", `^no engine "paper"`},
		"no flag":                  {every, nil, "zookeeper", `^"zookeeper" has no meaning`},
		"AWS without a region": {
			every,
			[]string{"AWS_REGION=", "AWS_DEFAULT_REGION="},
			"-engine dynamodb", `^DynamoDB on AWS needs the variables AWS_REGION`,
		},
		"no TTL":                {[]string{"consumer"}, nil, "-ttl -1s", `^-ttl must be positive\n$`},
		"trouble for ZooKeeper": {[]string{"consumer"}, nil, "-trouble -servers " + server(t).Addr(), `^-trouble cannot cut off a client of ZooKeeper`},
		"no ZooKeeper":          {[]string{"consumer"}, nil, "-servers " + absent, `^zklock: dial: [^\n]*` + absent},
		"no DynamoDB":           {[]string{"consumer"}, nil, "-endpoint http://" + absent, `^dynamolock: [^\n]*` + absent},
	} {
		tests[name] = func(t *testing.T) {
			for _, program := range test.programs {
				e := all.run(t, program, test.env, strings.Fields(test.args)...)
				e.ends(1)
				e.complained(test.says)
				if e.out.String() != "" {
					t.Errorf("it had begun; %s", e)
				}
			}
		}
	}
	tests["no such flag"] = func(t *testing.T) {
		e := all.run(t, "quickstart", nil, "-server", "a:1")
		e.ends(2) // with the usage of all flags, so not with one line
		if err := e.stderr(); !strings.HasPrefix(err, "flag provided but not defined: -server\n") || !strings.Contains(err, "HOLDFAST_ENGINE") {
			t.Errorf("it does not tell of its flags; %s", e)
		}
	}
	together(t, tests)
}
