package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// newManCommand writes the manual pages, for packages of the program.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages into a directory",
		Args:   takes(1, 1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeManual(args[0], cmd.Root())
		},
	}
}

// writeManual writes the page of a command and those of its subcommands.
func writeManual(dir string, cmd *cobra.Command) error {
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(manualPage(cmd)), 0o644); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "completion" { // cobra's own, which has help
			if err := writeManual(dir, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manualPage is a page for man(1) with the help of a command as it is.
func manualPage(cmd *cobra.Command) string {
	name := pageName(cmd)
	var page strings.Builder
	fmt.Fprintf(&page, ".TH %s 1 \"\" %s\n.SH NAME\n%s \\- %s\n", quoteRoff(strings.ToUpper(name)), quoteRoff("holdfast "+readVersion().Version), roff(name), roff(cmd.Short))
	section := func(title, text string) {
		fmt.Fprintf(&page, ".SH %s\n.nf\n", title)
		for line := range strings.Lines(text) {
			page.WriteString(roff(line))
		}
		page.WriteString(".fi\n")
	}
	if cmd.Long != "" {
		section("DESCRIPTION", cmd.Long+"\n")
	}
	section("USAGE", cmd.UsageString())
	if cmd.HasParent() {
		fmt.Fprintf(&page, ".SH \"SEE ALSO\"\n.BR %s (1)\n", roff(pageName(cmd.Parent())))
	}
	return page.String()
}

// roff escapes what troff would interpret.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}

func quoteRoff(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
