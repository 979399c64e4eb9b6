// Package verify is the command audit: it checks whether the record of a run was altered.
package verify

import (
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/spf13/cobra"
)

// Command returns the command audit.
func Command(con *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Check whether the record of a run was altered",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return exit.Usagef("unknown command %q: write %s verify [RUN|FILE]", args[0], cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(auditVerifyCommand(con))
	return cmd
}

// auditFlags are the arguments and flags of audit verify.
type auditFlags struct {
	journals.ReadFlags
	head string
}

func auditVerifyCommand(con *console.Console) *cobra.Command {
	s := &auditFlags{}
	s.MayBeFile = true
	cmd := &cobra.Command{
		Use:   "verify [RUN|FILE]",
		Short: "Check whether the record of a run, or a trace file, was altered",
		Long: `verify reads the record of a run in the journal: of the newest, or of the one
whose ID begins with RUN. If a file of that name exists it reads that file, a record
that "runteam run --trace FILE" wrote; - is standard input. It reports whether any
line of the record was altered (decisions, prompts, events, result), and whether a
record in the journal belongs to RUN. The answer names the run and is

  verified                    closed, unaltered, and it ends with the head of --head
  consistent, not anchored    closed and consistent; no head was given
  open                        unaltered up to the given line; a closing line is missing
  broken at line N            altered, or the record of another run

Exit status: 0 for the first two; 1 for the others; 2 usage, or FILE cannot be read; 3 the
journal cannot be read.`,
		Example: `  runteam audit verify                         the newest run
  runteam audit verify 0195c3a1 --head a06a…b9be:9
  runteam audit verify trace.jsonl --head "$(cat trace.head)"`,
		Args: s.Arguments(1, "one RUN or FILE"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := s.options(con)
			if err != nil {
				return err
			}
			return verify(con, cmd, s, o)
		},
	}
	s.AddTo(cmd)
	cmd.Flags().StringVar(&s.head, "head", "", "the `HEAD` that the record must end with, as the run printed it")
	cmd.Flags().StringVar(&s.AuditKey, "key-file", "", "the `FILE` with the key of the record, without one line feed at its end (default $"+journals.EnvAuditKey+")")
	journals.NewCompleter(con, &s.Flags).Arguments(cmd, false, true)
	return cmd
}

// options reads the flags.
func (s *auditFlags) options(con *console.Console) (o audit.VerifyOptions, err error) {
	if err := o.Head.UnmarshalText([]byte(s.head)); err != nil {
		return o, exit.Usagef("--head %v", err)
	}
	o.Key, err = journals.AuditKey(con, "key-file", s.AuditKey)
	return o, err
}

// verify verifies a record and prints the answer.
func verify(con *console.Console, cmd *cobra.Command, s *auditFlags, o audit.VerifyOptions) error {
	verify := s.verifyRun
	if s.Run == "-" || s.Run != "" && files.IsFile(con.WorkDir, s.Run) {
		verify = s.verifyFile
	}
	report, name, err := verify(cmd, con, o)
	if err != nil {
		return err
	}
	if report.Keyed && o.Key == nil {
		return exit.Usagef("%s: the record was written with a key: give --key-file FILE or set %s", name, journals.EnvAuditKey)
	}
	of := ""
	if strings.HasPrefix(name, runName) {
		of = " of the record of " + terminal.CleanLine(name)
	}
	err = con.PrintResult(report, func(w io.Writer) { fmt.Fprintln(w, sentence(report, of)) })
	if err == nil && report.Status != audit.Verified && report.Status != audit.Consistent {
		err = exit.Status(exit.StatusFailed)
	}
	return err
}

// runName begins the name of a record that is in the journal.
const runName = "run "

// verifyFile verifies the record in a file.
func (s *auditFlags) verifyFile(cmd *cobra.Command, con *console.Console, o audit.VerifyOptions) (r audit.Report, name string, err error) {
	in, err := files.OpenInput(cmd.Context(), con.Stdin, con.WorkDir, s.Run)
	if err == nil {
		defer in.Close()
		r, err = audit.Verify(in, o)
	}
	return r, s.Run, journals.RecordError(cmd.Context(), s.Run, err)
}

// verifyRun verifies the record of a run in the journal.
func (s *auditFlags) verifyRun(cmd *cobra.Command, con *console.Console, o audit.VerifyOptions) (r audit.Report, name string, err error) {
	j, found, err := s.OpenRun(cmd, con)
	if err != nil {
		return r, "", err
	}
	defer j.Close()
	name = runName + found.Run
	r, err = j.Verify(cmd.Context(), found.Run, o)
	return r, name, journals.RecordError(cmd.Context(), name, err)
}

// sentence returns the answer as text; of names the record that the lines belong to, unless it is
// a file.
func sentence(r audit.Report, of string) string {
	switch {
	case r.Status == audit.Broken && r.Line > 0:
		return fmt.Sprintf("broken at line %d%s: %s", r.Line, of, r.Why)
	case r.Status == audit.Broken || r.Runs == 0:
		return fmt.Sprintf("%s: %s", r.Status, r.Why)
	}
	lines := "all " + format.Plural(r.Covered, "line")
	if r.Status == audit.Open {
		lines = "up to line " + format.Number(r.Covered)
	}
	text := string(r.Status) + ": "
	if r.Run != "" {
		text += runName + terminal.CleanLine(r.Run) + ", "
	}
	text += lines + ", " + format.Plural(r.Decisions, "decision")
	if r.Runs > 1 {
		text += " in " + format.Plural(r.Runs, "chain")
	}
	text += fmt.Sprintf(", %s held, head %s", format.Number(r.Withheld), r.Head)
	if r.Previous != (audit.Head{}) {
		text += fmt.Sprintf("; it continues the record with head %s", r.Previous)
	}
	if r.Status == audit.Open {
		text += fmt.Sprintf("; line %d%s: %s", r.Line, of, r.Why)
	}
	return text
}
