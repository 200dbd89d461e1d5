package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretsAreNotPrinted tests credentials from the environment or a file: no command
// prints or logs them, however it fails.
func TestSecretsAreNotPrinted(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		const secret = "correct-horse-battery"
		var withSecret [][]string
		if e.name == "zookeeper" {
			withSecret = [][]string{{"HOLDFAST_AUTH=digest:user:" + secret}, {"HOLDFAST_AUTH=nosuchscheme:" + secret}}
			for _, content := range []string{"digest:user:" + secret, secret} {
				file := filepath.Join(t.TempDir(), "auth")
				if err := os.WriteFile(file, []byte(content+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				withSecret = append(withSecret, []string{"HOLDFAST_AUTH_FILE=" + file})
			}
		} else {
			withSecret = [][]string{{"AWS_SECRET_ACCESS_KEY=" + secret, "AWS_SESSION_TOKEN=token-" + secret}}
			file := filepath.Join(t.TempDir(), "credentials")
			if err := os.WriteFile(file, []byte("[default]\naws_access_key_id = AKID\naws_secret_access_key = "+secret+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			withSecret = append(withSecret, []string{"AWS_SHARED_CREDENTIALS_FILE=" + file, "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN="})
		}
		key := newKey(t)
		e.acquire(t, key, "the holder")
		unreachable := []string{"HOLDFAST_SERVERS=127.0.0.1:1"}
		if e.name == "dynamodb" {
			unreachable = []string{"AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1"}
		}
		for i, secrets := range withSecret {
			for j, c := range []struct {
				env  []string
				args []string
			}{
				{nil, []string{"ls"}},
				{nil, []string{"show", key, "-o", "json"}},
				{nil, []string{"run", "-k", key, "--try", "--", "true"}},
				{nil, []string{"run", "-k", key + ".free", "--lease", calm, "--", "true"}},
				{nil, []string{"show", "a\x01b"}},
				{nil, []string{"run", "--help"}},
				{[]string{"HOLDFAST_TABLE=no-such-table"}, []string{"ls", "--engine", e.name}},
				{unreachable, []string{"ls"}},
			} {
				if i > 0 && j > 2 {
					continue
				}
				args := append([]string{"-v", "--timeout", "2s"}, c.args...)
				p := launch(t, append(append(append([]string{}, e.direct...), secrets...), c.env...), nil, args...)
				p.wait()
				out, log := read(p.stdout), read(p.stderr)
				if out == "" && log == "" && c.args[0] != "run" {
					t.Errorf("%q says nothing", args)
				}
				for _, text := range []string{out, log} {
					if strings.Contains(text, secret) {
						t.Errorf("%q prints the secret: %s", args, text)
					}
				}
			}
		}
	})
}
