package flags

import (
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// values says what to write as the value of the flags that must not be empty: an empty value is
// mostly a variable that a script forgot to set.
var values = map[string]string{
	"audit-anchor": "name a file",
	"audit-key":    "name a file",
	"diff":         "write the ID of a run",
	"encrypt-from": "write a label",
	"from":         "name an input or a task",
	"head":         "write the head that the run printed",
	"journal":      "name a file",
	"journal-key":  "name a file",
	"key-file":     "name a file",
	"script":       "name a file",
	"to":           "name a reader",
	"workspaces":   "name a folder",
}

// CheckEmpty refuses flags that are given without the value that they need.
func CheckEmpty(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if what, ok := values[f.Name]; ok && f.Value.String() == "" && err == nil {
			err = exit.Usagef("--%s is empty: %s", f.Name, what)
		}
	})
	return err
}
