package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/journal"
)

// envAuditKey names the environment variable that --key-file and --audit-key go before.
const envAuditKey = "RUNTEAM_AUDIT_KEY"

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Check whether the record of a run was altered",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError("unknown command %q: write %s verify [RUN|FILE]", args[0], cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.auditVerifyCommand())
	return cmd
}

// auditing is what is known of a record from elsewhere.
type auditing struct {
	looking
	head    string
	keyFile string
}

func (a *app) auditVerifyCommand() *cobra.Command {
	s := &auditing{}
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
				return usageError("%s takes one RUN or FILE, not %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := s.options(a, cmd.Flags().Changed("head"), cmd.Flags().Changed("key-file"))
			if err != nil {
				return err
			}
			if err := s.arguments(args); err != nil {
				return err
			}
			return a.auditVerify(cmd, s, o)
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&s.head, "head", "", "the `HEAD` that the record must end with, as the run said it")
	cmd.Flags().StringVar(&s.keyFile, "key-file", "", "the `FILE` with the key of the record, without one line feed at its end (default $"+envAuditKey+")")
	newCompleter(a, &s.journaling).arguments(cmd, false, true)
	return cmd
}

// options reads the flags. An empty head that was given is a mistake of a
// script, and must not turn into an answer that looks well.
func (s *auditing) options(a *app, headGiven, fileGiven bool) (o audit.VerifyOptions, err error) {
	if headGiven && s.head == "" {
		return o, usageError("--head is empty")
	}
	if err := o.Head.UnmarshalText([]byte(s.head)); err != nil {
		return o, usageError("--head %v", err)
	}
	if fileGiven && s.keyFile == "" {
		return o, usageError("--key-file is empty")
	}
	o.Key, err = a.auditKey("key-file", s.keyFile)
	return o, err
}

// auditKey returns the key of a record, from the file that a flag names, or
// without one from the environment. A line feed at its end is left out. Without a key it returns nil.
func (a *app) auditKey(flag, file string) ([]byte, error) {
	from := envAuditKey
	text, _ := a.lookup(envAuditKey)
	if file != "" {
		read, err := readKeyFile(flag, file)
		if err != nil {
			return nil, err
		}
		from, text = file, read
	} else if text == "" {
		return nil, nil
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	if len(text) < audit.MinKey {
		return nil, usageError("the key in %s has %s: a key has %d or more", from, plural(len(text), "byte"), audit.MinKey)
	}
	return []byte(text), nil
}

// auditVerify verifies a record and prints the answer.
func (a *app) auditVerify(cmd *cobra.Command, s *auditing, o audit.VerifyOptions) error {
	verify := s.verifyRun
	if s.run == "-" || s.run != "" && isFile(s.run) {
		verify = s.verifyFile
	}
	report, name, err := verify(cmd, a, o)
	if err != nil {
		return err
	}
	if report.Keyed && o.Key == nil {
		return usageError("%s: the record was written with a key: give --key-file FILE or set %s", name, envAuditKey)
	}
	if a.settings.json() {
		err = a.printJSON(report)
	} else {
		of := ""
		if strings.HasPrefix(name, runName) {
			of = " of the record of " + cleanLine(name)
		}
		err = a.printText(auditSentence(report, of))
	}
	if err = satisfied(err); err == nil && report.Status != audit.Verified && report.Status != audit.Consistent {
		err = ended(statusFailed)
	}
	return err
}

// runName begins the name of a record that is in the journal.
const runName = "run "

// verifyFile verifies the record in a file.
func (s *auditing) verifyFile(cmd *cobra.Command, a *app, o audit.VerifyOptions) (r audit.Report, name string, err error) {
	in := a.stdin
	if s.run != "-" {
		file, err := openInput(cmd.Context(), s.run)
		if err != nil {
			return r, "", unread(s.run, plainly(err))
		}
		defer file.Close()
		in = file
	}
	if r, err = audit.Verify(newUntil(cmd.Context(), in), o); err != nil {
		err = unread(s.run, err)
	}
	return r, s.run, err
}

// verifyRun verifies the record of a run in the journal.
func (s *auditing) verifyRun(cmd *cobra.Command, a *app, o audit.VerifyOptions) (r audit.Report, name string, err error) {
	s.auditKey = s.keyFile
	j, err := s.open(cmd, a)
	if err != nil {
		return r, "", neither(s.run, err)
	}
	defer j.Close()
	run, err := meant(cmd.Context(), j, s.run)
	if err != nil {
		return r, "", err
	}
	found, err := j.Find(cmd.Context(), run)
	if err != nil {
		return r, "", neither(s.run, unloaded(whyEnded(cmd.Context(), err)))
	}
	name = runName + found.Run
	if r, err = j.Verify(cmd.Context(), found.Run, o); err != nil {
		err = unread(name, whyEnded(cmd.Context(), err))
	}
	return r, name, err
}

// unread words a failure to read a record, or what a signal made of it.
func unread(path string, err error) error {
	if cause, ok := errors.AsType[*interrupted](err); ok {
		return &fault{kind: kindRuntime, err: fmt.Errorf("%s: %w", path, err), exit: cause.status()}
	}
	k := kindIO
	if _, ok := errors.AsType[*journal.Error](err); ok {
		k = kindRuntime
	}
	return &fault{kind: k, err: fmt.Errorf("%s: %w", path, err)}
}

// auditSentence is the answer for people: what it is worth, for which lines.
// Of is what those are lines of, unless that is a file.
func auditSentence(r audit.Report, of string) string {
	switch {
	case r.Status == audit.Broken && r.Line > 0:
		return fmt.Sprintf("broken at line %d%s: %s", r.Line, of, r.Why)
	case r.Status == audit.Broken || r.Runs == 0:
		return fmt.Sprintf("%s: %s", r.Status, r.Why)
	}
	lines := "all " + plural(r.Covered, "line")
	if r.Status == audit.Open {
		lines = "up to line " + number(r.Covered)
	}
	text := string(r.Status) + ": "
	if r.Run != "" {
		text += runName + cleanLine(r.Run) + ", "
	}
	text += lines + ", " + plural(r.Decisions, "decision")
	if r.Runs > 1 {
		text += " in " + plural(r.Runs, "chain")
	}
	text += fmt.Sprintf(", %s held, head %s", number(r.Held), r.Head)
	if r.Previous != (audit.Head{}) {
		text += fmt.Sprintf("; it continues the record with head %s", r.Previous)
	}
	if r.Status == audit.Open {
		text += fmt.Sprintf("; line %d%s: %s", r.Line, of, r.Why)
	}
	return text
}
