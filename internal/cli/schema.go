package cli

import (
	"io"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/spf13/cobra"
)

func schemaCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a spec, for editors",
		Example: `  runteam schema > runteam.schema.json
and in the first line of a spec:
  # yaml-language-server: $schema=./runteam.schema.json`,
		Annotations: map[string]string{console.OriginalAnnotation: "true"},
		Args:        flags.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			return exit.IgnoreClosedPipe(con.Print(func(w io.Writer) error {
				_, err := w.Write(specfile.JSONSchema())
				return err
			}))
		},
	}
}
