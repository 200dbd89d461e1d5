package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// manualPage converts the help of a command to a page for man(1).
func manualPage(cmd *cobra.Command) string {
	var page strings.Builder
	fmt.Fprintf(&page, ".TH %s 1 \"\" %s\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", quoteRoff(strings.ToUpper(pageName(cmd))), quoteRoff("holdfast "+readVersion().Version), roff(pageName(cmd)), roff(cmd.Short))
	if cmd.Runnable() {
		fmt.Fprintf(&page, "%s\n", roff(cmd.UseLine()))
	} else {
		fmt.Fprintf(&page, "%s COMMAND\n", roff(cmd.CommandPath()))
	}
	page.WriteString(".SH DESCRIPTION\n")
	pageText(&page, cmd.Long)
	if cmd.HasExample() {
		page.WriteString(".SH EXAMPLES\n")
		pageText(&page, cmd.Example)
	}
	for _, g := range flagGroups(cmd) {
		fmt.Fprintf(&page, ".SH %s\n", quoteRoff(strings.ToUpper(g.title)))
		g.VisitAll(func(f *pflag.Flag) {
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			value, usage := pflag.UnquoteUsage(f)
			if !slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) {
				usage += " (default " + f.DefValue + ")"
			}
			fmt.Fprintf(&page, ".TP\n\\fB%s\\fR %s\n%s\n", roff(name), roff(value), roff(usage))
		})
	}
	if cmd.HasAvailableSubCommands() {
		page.WriteString(".SH COMMANDS\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&page, ".TP\n\\fB%s\\fR\n%s\n", roff(c.CommandPath()), roff(c.Short))
			}
		}
	}
	if cmd.HasParent() {
		fmt.Fprintf(&page, ".SH \"SEE ALSO\"\n.BR %s (1)\n", roff(pageName(cmd.Parent())))
	}
	return page.String()
}

// pageText sets paragraphs. Indented lines stay as they are.
func pageText(page *strings.Builder, text string) {
	asIs := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if indented := strings.HasPrefix(line, "  "); indented != asIs && line != "" {
			asIs = indented
			page.WriteString(map[bool]string{true: ".RS\n.nf\n", false: ".fi\n.RE\n.PP\n"}[asIs])
		}
		switch {
		case line == "" && !asIs:
			page.WriteString(".PP\n")
		case strings.TrimSpace(line) != "":
			page.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
		}
	}
	if asIs {
		page.WriteString(".fi\n.RE\n")
	}
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
