package dynamoserver

import (
	"strings"
	"testing"
)

// clean unsets the environment variables that choose a server.
func clean(t *testing.T) {
	for _, name := range []string{"DYNAMODB_ENDPOINT", "HOLDFAST_DYNAMODB", "DYNAMODB", "DYNAMODB_LOCAL_HOME", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
}

func TestOpenGiven(t *testing.T) {
	target := Find(t)
	if target.Source() == AWS {
		t.Log("given is AWS")
		return
	}
	clean(t)
	for _, pair := range target.Env() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	given, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	given.Close()
	if given.Source() != Given || given.Endpoint() != target.Endpoint() {
		t.Errorf("Open = %s at %s, want the given server at %s", given.Source(), given.Endpoint(), target.Endpoint())
	}
	if given.AllOld() != target.AllOld() || given.Transactions() != target.Transactions() || given.TimeToLive() != target.TimeToLive() {
		t.Errorf("features of one server: %+v as given, else %+v", given.features, target.features)
	}
	if err := serves(t.Context(), target.Client()); err != nil {
		t.Errorf("Close has stopped a server that Open had not started: %v", err)
	}
}

func TestOpenFailsWithTheCure(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"unknown place":      {map[string]string{"HOLDFAST_DYNAMODB": "elsewhere"}, "docker, dynalite"},
		"unknown program":    {map[string]string{"DYNAMODB": "elsewhere"}, "want local"},
		"no directory":       {map[string]string{"DYNAMODB": "local"}, "DYNAMODB_LOCAL_HOME"},
		"directory, no jar":  {map[string]string{"DYNAMODB": "local", "DYNAMODB_LOCAL_HOME": "/"}, "DynamoDBLocal.jar"},
		"AWS, no region":     {map[string]string{"DYNAMODB_ENDPOINT": "aws"}, "AWS_REGION"},
		"AWS's URL":          {map[string]string{"DYNAMODB_ENDPOINT": "https://dynamodb.eu-west-1.amazonaws.com"}, "AWS_REGION"},
		"no node and no npm": {map[string]string{"HOLDFAST_DYNAMODB": "dynalite", "PATH": "/nowhere", "HOME": "/nowhere", "XDG_CACHE_HOME": ""}, "make setup"},
		"nobody there":       {map[string]string{"DYNAMODB_ENDPOINT": "http://127.0.0.1:9"}, "127.0.0.1:9"},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			target, err := Open(t.Context())
			if err == nil {
				target.Close()
				t.Fatalf("Open = %s at %s", target.Source(), target.Endpoint())
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v; want it to name %s", err, c.want)
			}
		})
	}
}

func TestAWSFromTheEnvironment(t *testing.T) {
	clean(t)
	for name, value := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
	} {
		t.Setenv(name, value)
	}
	const other = "https://dynamodb-fips.eu-west-1.amazonaws.com"
	for endpoint, want := range map[string]string{"aws": "https://dynamodb.eu-west-1.amazonaws.com", other: other} {
		if !isAWS(endpoint) {
			t.Errorf("%s is not taken for AWS", endpoint)
		}
		got, a, err := awsAccess(t.Context(), endpoint)
		if err != nil || got != want || a != (access{"eu-west-1", "id", "secret", "token"}) {
			t.Errorf("endpoint %s: %s, %+v, %v; want %s with the variables' access", endpoint, got, a, err, want)
		}
	}
	for _, endpoint := range []string{"http://127.0.0.1:8000", "http://localhost:8000/amazonaws.com", "http://example.com?.amazonaws.com"} {
		if isAWS(endpoint) {
			t.Errorf("%s is taken for AWS", endpoint)
		}
	}
}
