package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/spf13/cobra"
)

// version identifies the build, in JSON.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source; ends in "-modified" if the source was changed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  flags.NoArguments,
		RunE:  func(*cobra.Command, []string) error { return printVersion(con) },
	}
}

func printVersion(con *console.Console) error {
	v := thisVersion()
	if con.Settings.JSON() {
		return con.PrintJSON(v)
	}
	return con.PrintText(v.String())
}

func (v version) String() string {
	text := "runteam " + v.Version
	if v.Revision != "" {
		text += " " + v.Revision
	}
	return fmt.Sprintf("%s (%s, %s)", text, v.Go, v.Platform)
}

// thisVersion returns the version of this build.
func thisVersion() version {
	v := version{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	modified := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				modified = "-modified"
			}
		}
	}
	if v.Revision != "" {
		v.Revision += modified
	}
	return v
}
