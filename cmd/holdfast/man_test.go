package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestManualPages checks that each command has a page with all that its help says, and
// that troff takes none of the text for its own.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if status, stdout, stderr := call(t, nil, "man", dir); status != 0 || stdout+stderr != "" {
		t.Fatalf("status %d, %q, %q", status, stdout, stderr)
	}
	requests := regexp.MustCompile(`^\.(TH|SH|PP|TP|RS|RE|nf|fi|BR)\b`)
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		text, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Fatal(err)
		}
		page := strings.NewReplacer(`\-`, "-", `\&`, "", `\e`, `\`).Replace(string(text))
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !requests.MatchString(line) {
				t.Errorf("%s: troff takes %q for a request", cmd.CommandPath(), line)
			}
		}
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			if !strings.Contains(page, strings.TrimSpace(line)) {
				t.Errorf("the page of %s lacks %q", cmd.CommandPath(), line)
			}
		}
		for _, flags := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.Root().PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				if !strings.Contains(page, "--"+f.Name+`\fR`) {
					t.Errorf("the page of %s lacks --%s", cmd.CommandPath(), f.Name)
				}
			})
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				look(c)
			}
		}
	}
	look(newRootCommand(&app{}))
}

// TestVersion checks that a release says which one it is, in each way to ask.
func TestVersion(t *testing.T) {
	defer func(was string) { version = was }(version)
	version = "v1.2.3"
	for _, args := range [][]string{{"version"}, {"--version"}, {"version", "-o", "json"}} {
		if status, stdout, stderr := call(t, nil, args...); status != 0 || stderr != "" || !strings.Contains(stdout, "v1.2.3") {
			t.Errorf("%q: status %d, %q, %q", args, status, stdout, stderr)
		}
	}
}
