package plan

import (
	"errors"
	"fmt"
	"io"
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

// assertFlags are what flags assert about the flow, beside what the spec does.
type assertFlags struct {
	texts []string
	first int // index of the first of them among the assertions of the run
}

func (p *assertFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&p.texts, "assert", nil, "hold the plan to `PROMISE`: \"X never reaches B\" or \"X never derives into B\" (repeatable)")
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
		file.Run.Assert = append(file.Run.Assert, a)
	}
	return nil
}

// locate takes the place in the spec from what is wrong with assertions of
// flags, which stand in no file, and puts it last.
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

// writeFindings writes which assertions hold, and of each that does not the way.
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
	text := terminal.CleanLine(f.Assertion.Text)
	if f.Assertion.Line != "" {
		text += " (" + terminal.CleanLine(f.Assertion.Line) + ")"
	}
	return text
}

// findingReasons says why an assertion does not hold, and what one that does leaves open.
func findingReasons(f *engine.Finding) (lines []string) {
	if f.Why != "" {
		lines = append(lines, terminal.CleanLine(f.Why))
	}
	if len(f.Path) > 0 {
		lines = append(lines, terminal.CleanLine(f.Path.String()))
	}
	return lines
}

// brokenFindings returns the assertions that do not hold.
func brokenFindings(p *engine.Plan) (broken []*engine.Finding) {
	if p == nil {
		return nil
	}
	for i := range p.Findings {
		if !p.Findings[i].Holds {
			broken = append(broken, &p.Findings[i])
		}
	}
	return broken
}

// reportBroken ends a command with status 1 if an assertion does not hold. What
// stdout did not say of it, in a form without a place for it, stderr does.
func reportBroken(con *console.Console, p *engine.Plan, said bool) error {
	broken := brokenFindings(p)
	if len(broken) == 0 {
		return nil
	}
	for _, f := range broken {
		if said {
			break
		}
		con.Say("BROKEN  %s\n        %s", assertionText(f), strings.Join(findingReasons(f), "\n        "))
	}
	con.Say("runteam: %d of %s broken", len(broken), format.Plural(len(p.Findings), "assertion"))
	return exit.Status(exit.StatusFailed)
}
