package cli

import (
	"errors"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/specfile"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a spec, for editors",
		Example: `  runteam schema > runteam.schema.json
and in the first line of a spec:
  # yaml-language-server: $schema=./runteam.schema.json`,
		Annotations: map[string]string{originalForm: "true"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("%s takes no argument", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			return satisfied(a.print(func(w io.Writer) error {
				_, err := w.Write(specfile.JSONSchema())
				return err
			}))
		},
	}
}

// satisfied is what becomes of printing something that can be printed again: a
// reader that went away, as head does, has read enough.
func satisfied(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}
