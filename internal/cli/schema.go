package cli

import (
	"cmp"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/sent"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/spf13/cobra"
)

func schemaCommand(con *console.Console) *cobra.Command {
	documents := map[string]func() []byte{"spec": specfile.JSONSchema, "handoff": func() []byte { return sent.Schema }}
	return &cobra.Command{
		Use:   "schema [spec|handoff]",
		Short: "Print the JSON Schema of a spec, for editors, or of a handoff",
		Long: `schema prints a JSON Schema: that of spec files, or with handoff that of what agents send to each
other, as "runteam show --handoffs -o json" lists it.`,
		Example: `  runteam schema handoff > handoff.schema.json
  runteam schema > runteam.schema.json
and in the first line of a spec:
  # yaml-language-server: $schema=./runteam.schema.json`,
		Annotations: map[string]string{console.OriginalAnnotation: "true"},
		ValidArgs:   []string{"spec", "handoff"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && documents[args[0]] == nil {
				return exit.Usagef("schema takes spec, which is the default, or handoff, not %q", strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return con.Print(func(w io.Writer) error {
				_, err := w.Write(documents[cmp.Or(strings.Join(args, ""), "spec")]())
				return err
			})
		},
	}
}
