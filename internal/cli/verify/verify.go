// Package verify is the command audit: it checks whether the record of a run was altered.
package verify

import (
	"fmt"
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

// auditFlags is what is known of a record from elsewhere.
type auditFlags struct {
	journals.ReadFlags
	head    string
	keyFile string
}

func auditVerifyCommand(con *console.Console) *cobra.Command {
	s := &auditFlags{}
	cmd := &cobra.Command{
		Use:   "verify [RUN|FILE]",
		Short: "Check whether the record of a run, or a trace file, was altered",
		Long: `verify reads the record of a run in the journal: of the newest, or of the one
whose id begins with RUN. If there is a file of that name it reads that, as the
record which "runteam run --trace FILE" writes; - is standard input. It says
whether the record was altered: in its decisions, its prompts, its events, its
result, any line of it; and whether a record in the journal is that of RUN. The
answer names the run and is

  verified                    closed, unaltered, and it ends with the head of --head
  consistent, not anchored    closed and unaltered in itself; no head was given
  open                        unaltered as far as it says; a closing line is missing
  broken at line N            altered, or the record of another run

Exit status: 0 for the first two; 1 for the others; 2 usage, or FILE cannot be read; 3 the
journal cannot be read.`,
		Example: `  runteam audit verify                         the newest run
  runteam audit verify 0195c3a1 --head a06a…b9be:9
  runteam audit verify trace.jsonl --head "$(cat trace.head)"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Usagef("%s takes one RUN or FILE, not %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := s.options(con, cmd.Flags().Changed("head"), cmd.Flags().Changed("key-file"))
			if err != nil {
				return err
			}
			if err := s.ParseRun(args); err != nil {
				return err
			}
			return verify(con, cmd, s, o)
		},
	}
	s.AddTo(cmd)
	cmd.Flags().StringVar(&s.head, "head", "", "the `HEAD` that the record must end with, as the run said it")
	cmd.Flags().StringVar(&s.keyFile, "key-file", "", "the `FILE` with the key of the record, without one line feed at its end (default $"+journals.EnvAuditKey+")")
	journals.NewCompleter(con, &s.Flags).Arguments(cmd, false, true)
	return cmd
}

// options reads the flags. An empty head that was given is a mistake of a
// script, and must not turn into an answer that looks well.
func (s *auditFlags) options(con *console.Console, headGiven, fileGiven bool) (o audit.VerifyOptions, err error) {
	if headGiven && s.head == "" {
		return o, exit.Usagef("--head is empty")
	}
	if err := o.Head.UnmarshalText([]byte(s.head)); err != nil {
		return o, exit.Usagef("--head %v", err)
	}
	if fileGiven && s.keyFile == "" {
		return o, exit.Usagef("--key-file is empty")
	}
	o.Key, err = journals.AuditKey(con, "key-file", s.keyFile)
	return o, err
}

// verify verifies a record and prints the answer.
func verify(con *console.Console, cmd *cobra.Command, s *auditFlags, o audit.VerifyOptions) error {
	verify := s.verifyRun
	if s.Run == "-" || s.Run != "" && files.IsFile(s.Run) {
		verify = s.verifyFile
	}
	report, name, err := verify(cmd, con, o)
	if err != nil {
		return err
	}
	if report.Keyed && o.Key == nil {
		return exit.Usagef("%s: the record was written with a key: give --key-file FILE or set %s", name, journals.EnvAuditKey)
	}
	if con.Settings.JSON() {
		err = con.PrintJSON(report)
	} else {
		of := ""
		if strings.HasPrefix(name, runName) {
			of = " of the record of " + terminal.CleanLine(name)
		}
		err = con.PrintText(sentence(report, of))
	}
	if err = exit.IgnoreClosedPipe(err); err == nil && report.Status != audit.Verified && report.Status != audit.Consistent {
		err = exit.Status(exit.StatusFailed)
	}
	return err
}

// runName begins the name of a record that is in the journal.
const runName = "run "

// verifyFile verifies the record in a file.
func (s *auditFlags) verifyFile(cmd *cobra.Command, con *console.Console, o audit.VerifyOptions) (r audit.Report, name string, err error) {
	in := con.Stdin
	if s.Run != "-" {
		file, err := files.OpenInput(cmd.Context(), s.Run)
		if err != nil {
			return r, "", journals.FileError(s.Run, exit.WithoutPath(err))
		}
		defer file.Close()
		in = file
	}
	if r, err = audit.Verify(files.NewContextReader(cmd.Context(), in), o); err != nil {
		err = journals.FileError(s.Run, err)
	}
	return r, s.Run, err
}

// verifyRun verifies the record of a run in the journal.
func (s *auditFlags) verifyRun(cmd *cobra.Command, con *console.Console, o audit.VerifyOptions) (r audit.Report, name string, err error) {
	s.AuditKey = s.keyFile
	j, err := s.Open(cmd, con)
	if err != nil {
		return r, "", journals.NeitherFileNorRun(s.Run, err)
	}
	defer j.Close()
	run, err := journals.ResolveRun(cmd.Context(), j, s.Run)
	if err != nil {
		return r, "", err
	}
	found, err := j.Find(cmd.Context(), run)
	if err != nil {
		return r, "", journals.NeitherFileNorRun(s.Run, journals.ReadError(exit.Cause(cmd.Context(), err)))
	}
	name = runName + found.Run
	if r, err = j.Verify(cmd.Context(), found.Run, o); err != nil {
		err = journals.FileError(name, exit.Cause(cmd.Context(), err))
	}
	return r, name, err
}

// sentence is the answer for people: what it is worth, for which lines.
// Of is what those are lines of, unless that is a file.
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
	text += fmt.Sprintf(", %s held, head %s", format.Number(r.Held), r.Head)
	if r.Previous != (audit.Head{}) {
		text += fmt.Sprintf("; it continues the record with head %s", r.Previous)
	}
	if r.Status == audit.Open {
		text += fmt.Sprintf("; line %d%s: %s", r.Line, of, r.Why)
	}
	return text
}
