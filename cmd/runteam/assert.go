package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/flow"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// promises are what flags assert about the flow, beside what the spec does.
type promises struct{ texts []string }

func (p *promises) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&p.texts, "assert", nil, "hold the plan to `PROMISE`: \"X never reaches B\" or \"X never derives into B\" (repeatable)")
	complete(cmd, "assert", nil)
}

// asserted has runs of a spec held to what it asserts.
func asserted(file *spec.File) error {
	file.Run.Assert = nil
	for _, given := range file.Asserts {
		a, err := flow.ParseAssertion(given.Text)
		if err != nil {
			return err
		}
		a.Line = given.Origin.String()
		file.Run.Assert = append(file.Run.Assert, a)
	}
	return nil
}

// add adds the assertions of flags to those of a spec.
func (p *promises) add(file *spec.File) error {
	for _, text := range p.texts {
		a, err := flow.ParseAssertion(text)
		if err != nil {
			return usageError("--assert: %w", err)
		}
		a.Line = "--assert"
		file.Run.Assert = append(file.Run.Assert, a)
	}
	return nil
}

// placed gives what is wrong with assertions their places: those of a spec come
// before those of flags, which stand in no file.
func placed(file *spec.File, err error) error {
	found, ok := errors.AsType[*spec.Error](err)
	if !ok {
		return err
	}
	out := &spec.Error{Problems: slices.Clone(found.Problems)}
	for i := range out.Problems {
		p := &out.Problems[i]
		k, ok := assertionOf(p.Err)
		switch {
		case !ok:
		case k >= len(file.Asserts):
			*p = spec.Problem{Message: "--assert: " + p.Message, Hint: p.Hint, Err: p.Err}
		default:
			at := file.Asserts[k].Origin
			if p.File != at.File || p.Line != at.Line {
				p.Excerpt = ""
			}
			p.File, p.Line, p.Column = at.File, at.Line, at.Column
		}
	}
	slices.SortStableFunc(out.Problems, func(p, q spec.Problem) int { return cmp.Compare(rank(p), rank(q)) })
	return out
}

// rank puts what stands in no file last.
func rank(p spec.Problem) int {
	if p.File == "" {
		return 1
	}
	return 0
}

// assertionOf returns which assertion an error is about.
func assertionOf(err error) (at int, ok bool) {
	p, ok := errors.AsType[task.Problem](err)
	n, about := strings.CutPrefix(p.Pointer, "/assert/")
	at, err = strconv.Atoi(n)
	return at, ok && about && err == nil
}

// writeFindings writes which assertions hold, and of each that does not the way.
func writeFindings(w io.Writer, found []team.Finding) {
	if len(found) == 0 {
		return
	}
	fmt.Fprint(w, "\nassertions\n")
	for i := range found {
		f := &found[i]
		fmt.Fprintf(w, "%-8s%s\n", verdict(f), promise(f))
		for _, line := range grounds(f) {
			fmt.Fprintf(w, "        %s\n", line)
		}
	}
}

func verdict(f *team.Finding) string {
	if f.Holds {
		return "holds"
	}
	return "BROKEN"
}

// promise is an assertion, and where it stands.
func promise(f *team.Finding) string {
	text := cleanLine(f.Assertion.Text)
	if f.Assertion.Line != "" {
		text += " (" + cleanLine(f.Assertion.Line) + ")"
	}
	return text
}

// grounds says why an assertion does not hold, and what one that does leaves open.
func grounds(f *team.Finding) (lines []string) {
	if f.Why != "" {
		lines = append(lines, cleanLine(f.Why))
	}
	if len(f.Path) > 0 {
		lines = append(lines, cleanLine(f.Path.String()))
	}
	return lines
}

// brokenOf returns the assertions that do not hold.
func brokenOf(p *team.Plan) (broken []*team.Finding) {
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

// judged ends a command with status 1 if an assertion does not hold. What
// stdout did not say of it, in a form without a place for it, stderr does.
func (a *app) judged(p *team.Plan, said bool) error {
	broken := brokenOf(p)
	if len(broken) == 0 {
		return nil
	}
	for _, f := range broken {
		if said {
			break
		}
		a.say("BROKEN  %s\n        %s", promise(f), strings.Join(grounds(f), "\n        "))
	}
	a.say("runteam: %d of %s broken", len(broken), plural(len(p.Findings), "assertion"))
	return ended(statusFailed)
}
