// Package export is the command export: it writes a stored run as one HTML file that opens without a
// server.
package export

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/inspector/page"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/label"
	"github.com/spf13/cobra"
)

// exportFlags are the arguments and flags of export.
type exportFlags struct {
	journals.ReadFlags
	file    files.Output
	accepts string
}

// Command returns the command export.
func Command(con *console.Console) *cobra.Command {
	e := &exportFlags{file: files.Output{Flag: "html"}}
	cmd := &cobra.Command{
		Use:   "export [RUN] --html FILE",
		Short: "Write a run as one HTML file that opens without a server",
		Long: `export writes a run of the journal as one HTML file: the newest, or the one whose ID
begins with RUN. The file shows what "runteam serve" shows of it: the graph, the
prompts with their sources, the decisions and the results. It opens in a browser
without a server and without a network.

The file has all that the user of the run may see, so a run above --accepts is an error;
secret values are in no export. Personal data and secrets are redacted even where the user may see them,
and so are the patterns of each policy of the run. Nothing in it says how long a text is that is
withheld or redacted.`,
		Example: `  runteam export --html run.html               the newest run
  runteam export 0195c3a1 --html run.html --accepts internal`,
		Args: e.Arguments(1, "one RUN"),
		RunE: func(cmd *cobra.Command, _ []string) error { return export(con, cmd, e) },
	}
	e.AddTo(cmd)
	journals.NewCompleter(con, &e.Flags).Arguments(cmd, false, false)
	f := cmd.Flags()
	f.StringVar(&e.file.Path, "html", "", "write the run to `FILE`")
	f.StringVar(&e.accepts, "accepts", label.Confidential.String(), "refuse a run above this `LABEL`: public, internal or confidential")
	f.BoolVar(&e.file.Force, "force", false, "replace a file that exists")
	flags.Complete(cmd, "accepts", label.Classifications()[:3])
	return cmd
}

// clearance returns the label of --accepts.
func (e *exportFlags) clearance() (label.Classification, error) {
	accepts, err := label.ParseClassification(e.accepts)
	switch {
	case err != nil:
		return accepts, exit.UnknownWord("--accepts", e.accepts, label.Classifications()[:3])
	case accepts > label.Confidential:
		return accepts, exit.Usagef("--accepts %s: no export has secret values; write public, internal or confidential", e.accepts)
	}
	return accepts, nil
}

func export(con *console.Console, cmd *cobra.Command, e *exportFlags) error {
	if e.file.Path == "" {
		return exit.Usagef("export needs the name of the file: add --html FILE")
	}
	accepts, err := e.clearance()
	if err != nil {
		return err
	}
	j, found, err := e.OpenRun(cmd, con)
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // nothing was written
	if err := journals.CheckOutputs(con, &e.Flags, &e.file); err != nil {
		return err
	}
	if err := e.file.Check(con.WorkDir, e.KeyFile); err != nil {
		return err
	}
	level, err := labelOf(cmd.Context(), j, found.Run, accepts)
	if err != nil {
		return err
	}
	_, html, err := Page(cmd.Context(), con, &e.Flags, j, found, level)
	if err != nil {
		return err
	}
	if err := e.file.Write(html); err != nil {
		return err
	}
	d := document{Run: found.Run, File: e.file.Path, Label: level, Bytes: len(html)}
	return con.PrintResult(d, func(w io.Writer) { d.write(w) })
}

// A document says what was written, in JSON.
type document struct {
	Run   string               `json:"runId"`
	File  string               `json:"file"`
	Label label.Classification `json:"label"` // of the run
	Bytes int                  `json:"bytes"`
}

func (d *document) write(w io.Writer) {
	fmt.Fprintf(w, "run %s, %s: %s in %s\n", d.Run, d.Label, format.Bytes(d.Bytes), d.File)
}

// labelOf returns the label of a run. A run above accepts is an error, since it is exported whole or not at all.
func labelOf(ctx context.Context, j *journal.Journal, run string, accepts label.Classification) (label.Classification, error) {
	level, err := j.Label(ctx, run)
	switch {
	case err != nil:
		return level, journals.ReadError(ctx, err)
	case level > label.Confidential:
		return level, exit.Usagef("run %s is %s, and no export has secret values", journals.ShortRun(run), level)
	case level > accepts:
		return level, exit.Usagef("run %s is %s, and --accepts %s leaves out all of it: write --accepts %s", journals.ShortRun(run), level, accepts, level)
	}
	return level, nil
}

// Page returns a run with a label as one HTML file, as [Collect] collects it, and a name for the file.
func Page(ctx context.Context, con *console.Console, g *journals.Flags, j *journal.Journal, found journal.Summary, level label.Classification) (name string, html []byte, err error) {
	d, err := Collect(ctx, con, g, j, found, level)
	if err != nil {
		return "", nil, err
	}
	html, err = page.Export(d)
	name = files.Slug(found.Name)
	if name == "" {
		name = "run"
	}
	return strings.Join([]string{name, journals.ShortRun(found.Run)}, "-") + ".html", html, err
}
