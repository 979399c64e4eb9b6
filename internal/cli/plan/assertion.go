package plan

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// assertFlags are the assertions of flags about the flow, in addition to those of the spec.
type assertFlags struct {
	texts []string
	first int // index of the first of them among the assertions of the run
}

func (p *assertFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&p.texts, "assert", nil, "check that the plan satisfies `ASSERTION`: \"X never reaches B\" or \"X never derives into B\" (repeatable)")
	flags.Complete(cmd, "assert", nil)
}

// add adds the assertions of flags to those of a spec.
func (p *assertFlags) add(file *specfile.File) error {
	p.first = len(file.Run.Assert)
	for _, text := range p.texts {
		a, err := flow.ParseAssertion(text)
		if err != nil {
			return exit.Usagef("--assert: %w", err)
		}
		a.Line = "--assert"
		file.Assert(a)
	}
	return nil
}

// locate removes the place in the spec from problems with assertions of flags, which are in no file,
// and lists them last.
func (p *assertFlags) locate(err error) error {
	found, ok := errors.AsType[*specfile.Error](err)
	if !ok || len(p.texts) == 0 {
		return err
	}
	var all, own []specfile.Problem
	for _, q := range found.Problems {
		if p.isOwn(q.Err) {
			own = append(own, specfile.Problem{Message: "--assert: " + q.Message, Hint: q.Hint, Err: q.Err})
		} else {
			all = append(all, q)
		}
	}
	return &specfile.Error{Problems: append(all, own...)}
}

// isOwn reports whether an error is about an assertion of a flag.
func (p *assertFlags) isOwn(err error) bool {
	about, ok := errors.AsType[task.Problem](err)
	n, assertion := strings.CutPrefix(about.Pointer, "/assert/")
	i, err := strconv.Atoi(n)
	return ok && assertion && err == nil && i >= p.first
}

// writeFindings writes which assertions hold, and the path for each that does not.
func writeFindings(w io.Writer, found []engine.Finding) {
	if len(found) == 0 {
		return
	}
	fmt.Fprint(w, "\nassertions\n")
	for i := range found {
		f := &found[i]
		fmt.Fprintf(w, "%-8s%s\n", findingWord(f), assertionText(f))
		for _, line := range findingReasons(f) {
			fmt.Fprintf(w, "        %s\n", line)
		}
	}
}

func findingWord(f *engine.Finding) string {
	if f.Holds {
		return "holds"
	}
	return "BROKEN"
}

// assertionText returns an assertion and where it is written.
func assertionText(f *engine.Finding) string {
	text := terminal.CleanLine(format.Readers(f.Assertion.Text))
	if f.Assertion.Line != "" {
		text += " (" + terminal.CleanLine(f.Assertion.Line) + ")"
	}
	return text
}

// findingReasons says why an assertion does not hold, or what one that holds does not cover.
func findingReasons(f *engine.Finding) (lines []string) {
	if f.Why != "" {
		lines = append(lines, terminal.CleanLine(format.Readers(f.Why)))
	}
	if len(f.Path) > 0 {
		lines = append(lines, terminal.CleanLine(format.Readers(f.Path.String())))
	}
	return lines
}

// brokenFindings returns the assertions that do not hold.
func brokenFindings(found []engine.Finding) (broken []*engine.Finding) {
	for i := range found {
		if !found[i].Holds {
			broken = append(broken, &found[i])
		}
	}
	return broken
}

// joinFindings returns the findings of the tasks of a spec with those of its chat. An assertion holds if it holds
// in both.
func joinFindings(tasks, chat []engine.Finding) []engine.Finding {
	all := slices.Clone(tasks)
	for _, f := range chat {
		at := slices.IndexFunc(all, func(o engine.Finding) bool { return o.Assertion == f.Assertion })
		if at < 0 {
			all = append(all, f)
		} else if all[at].Holds {
			all[at] = f
		}
	}
	return all
}

// reportBroken ends a command with status 1 if an assertion does not hold. It prints the assertions
// on stderr unless stdout has them.
func reportBroken(con *console.Console, found []engine.Finding, printed bool) error {
	broken := brokenFindings(found)
	if len(broken) == 0 {
		return nil
	}
	for _, f := range broken {
		if printed {
			break
		}
		con.Say("BROKEN  %s\n        %s", assertionText(f), strings.Join(findingReasons(f), "\n        "))
	}
	con.Say("runteam: %d of %s broken", len(broken), format.Plural(len(found), "assertion"))
	return exit.Status(exit.StatusFailed)
}
