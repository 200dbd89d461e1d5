package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by release builds: -ldflags "-X main.version=v1.2.3". Otherwise the build information has it.
var version string

// versionJSON names the sources of the program.
type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the sources were modified
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			return a.print(v, "%s", v)
		},
	}
}

func (v versionJSON) String() string {
	revision := ""
	if v.Revision != "" {
		revision = ", revision " + v.Revision[:min(len(v.Revision), 12)]
		if v.Modified {
			revision += " with changes"
		}
	}
	return fmt.Sprintf("holdfast %s%s, %s, %s", v.Version, revision, v.Go, v.Platform)
}

func readVersion() versionJSON {
	v := versionJSON{Version: cmp.Or(version, "unknown"), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = cmp.Or(version, info.Main.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
