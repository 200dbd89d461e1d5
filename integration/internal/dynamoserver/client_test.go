package dynamoserver

import "testing"

func TestAWSFromTheEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "",
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
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
