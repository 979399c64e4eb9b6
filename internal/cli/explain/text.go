package explain

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/brief"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// write writes the prompts as text.
func (x *Document) write(w io.Writer) {
	fmt.Fprintln(w, x.headline())
	for _, p := range x.chosen {
		of := x.prompt(p)
		of.write(w)
	}
	for _, u := range x.Unsent {
		fmt.Fprintf(w, "\n%s\n", format.Dotted(x.Trace.Title(u.ID), u.Assignee, "no prompt"))
		for _, h := range u.Withheld {
			fmt.Fprintf(w, "  withheld: %s, %s: %s\n", terminal.CleanLine(format.Readers(x.named(h.Source, h.From))), h.Label, terminal.CleanLine(format.Readers(string(h.Rule)+inParentheses(h.Line)+format.Unless(h.Detail == "", ": "+h.Detail))))
		}
	}
	if x.task != "" && len(x.chosen)+len(x.Unsent) == 0 {
		fmt.Fprintf(w, "\n%s: no prompt was recorded%s\n", terminal.CleanLine(x.task), x.status())
		if len(x.Rounds) > 0 {
			fmt.Fprintf(w, "Its rounds have the prompts: %s\n", format.List(x.Rounds, mostRounds))
		}
	}
}

// mostRounds is how many rounds are named where a task has no prompt of its own.
const mostRounds = 10

// rounds names what has the prompts of the only task that is explained: the rounds of its result. How
// other tasks ended is known only if they completed, so another round is named if the loop did not.
func (x *Document) rounds() (names []string) {
	tasks := x.Trace.Tasks()
	at := slices.IndexFunc(tasks, func(tk trace.Task) bool { return tk.Title == x.task })
	if at < 0 || tasks[at].Rounds == "" {
		return nil
	}
	prefix := tasks[at].Rounds + strings.TrimPrefix(x.task, naming.WithoutInstance(x.task))
	for i := range tasks {
		tk := &tasks[i]
		suffix, ok := strings.CutPrefix(tk.Title, prefix)
		switch {
		case !ok || !isRound.MatchString(suffix) || tk.Status == task.NotNeeded || tk.Status == task.Skipped:
		case tk.Status == task.Completed:
			names = append(names, cmp.Or(tk.Name, tk.Title))
		case tasks[at].Status != task.Completed:
			return append(names, cmp.Or(tk.Name, tk.Title))
		}
	}
	return names
}

// isRound matches what the title of a round has behind that of its loop, with the rounds around it.
var isRound = regexp.MustCompile(`^[#.]\d+$`)

// status returns a clause with the status of the only task that is explained.
func (x *Document) status() string {
	tk := x.Trace.Task(x.only)
	if tk == nil || tk.Status == "" {
		return ""
	}
	text := "; the task is " + format.Status(tk.Status)
	if of := x.Trace.State.Find(x.only); of != nil && tk.Status == task.NotNeeded {
		text += ": " + terminal.CleanLine(format.WhyNotNeeded(x.Trace.State.EndOf(of).Reason))
	}
	return text
}

// headline names the run and counts what was read.
func (x *Document) headline() string {
	text := journals.Heading(x.Name, x.Run)
	if x.Partial {
		text += ": showing only this task"
	} else {
		text += fmt.Sprintf(": %s, %s", format.Plural(len(x.Trace.Prompts), "prompt"), format.Plural(len(x.Trace.Handoffs), "decision"))
	}
	switch {
	case x.Torn:
		text += "; the " + x.kind() + " ends in the middle of a line"
	case !x.Whole:
		text += "; the " + x.kind() + " ends before the end of the run"
	}
	return text
}

// kind names what was read.
func (x *Document) kind() string {
	if x.File == "" {
		return "record"
	}
	return "trace"
}

// attemptText names an attempt; it is empty for a prompt that belongs to none.
func attemptText(attempt int) string {
	return format.Unless(attempt == 0, fmt.Sprintf("attempt %d", attempt))
}

// part returns the part of an attempt that a prompt belongs to, such as turn 2.
// It is empty for the main prompt.
func (p *PromptDocument) part() string {
	_, part, _ := strings.Cut(p.Session, fmt.Sprintf("/%s/%d/", p.Task, p.Attempt))
	return trace.PartName("/" + part)
}

// approves says which entry of the policy a person is asked to approve; it is empty for other prompts.
func (p *PromptDocument) approves() string {
	if !approvalPart.MatchString(p.Session) {
		return ""
	}
	for i := range p.Text {
		if entry, ok := strings.CutPrefix(p.Text[i].Words, plan.ApprovalTitle("")); ok && p.Text[i].Part == brief.PartTitle {
			return "approval of " + entry
		}
	}
	return "approval"
}

// approvalPart ends the session of a prompt that asks for the approval of a declassifier.
var approvalPart = regexp.MustCompile(`/approve/\d+$`)

func (p *PromptDocument) write(w io.Writer) {
	attempt := attemptText(p.Attempt)
	if approval := p.approves(); approval != "" {
		attempt = format.Dotted(attempt, approval)
	} else if part := p.part(); part != "" && attempt != "" {
		attempt += " " + part
	}
	fmt.Fprintf(w, "\n%s\n", format.Dotted(cmp.Or(p.Name, p.Title), p.Agent, attempt, p.Classification.String(), p.extent()))
	if text := contractText(&p.Contract); text != "" {
		fmt.Fprintf(w, "  contract: %s\n", text)
	}
	if len(p.System) > 0 {
		fmt.Fprint(w, "  system prompt\n")
		writePieces(w, p.System)
	}
	fmt.Fprint(w, "  user message\n")
	writePieces(w, p.Text)
	for _, text := range p.made {
		fmt.Fprintf(w, "  %s\n", text)
	}
	for _, r := range p.Returned {
		fmt.Fprintf(w, "  returned to the provider: %s of %s\n", terminal.CleanLine(strings.Join(r.Members, ", ")), terminal.CleanLine(cmp.Or(r.Call, fmt.Sprintf("turn %d", r.Turn))))
	}
	for _, h := range p.Withheld {
		text := h.What
		if len(h.Paths) > 0 {
			text += ": " + pathList(h.Paths)
		}
		if h.Text {
			text += ", its text"
		}
		if text += ", by " + string(h.Rule) + inParentheses(h.Line); h.Detail != "" {
			text += ": " + h.Detail
		}
		fmt.Fprintf(w, "  withheld: %s\n", terminal.CleanLine(format.Readers(text)))
	}
	if all := p.Absent.names(); len(all)+p.Absent.More > 0 {
		fmt.Fprintf(w, "  not sent, because nothing grants it: %s\n", format.ListOf(all, MaxAbsent, len(all)+p.Absent.More))
	}
}

// contractText says what the handshake before a prompt fixed; empty in a record that does not have it.
func contractText(k *prompt.Agreement) string {
	b := k.Bounds
	if b == nil {
		return ""
	}
	tools := "no tools"
	if len(k.Tools) > 0 {
		tools = "tools " + strings.Join(format.ToolNames(k.Tools), ", ")
	}
	text := fmt.Sprintf("cleared for %v, takes up to %v, answers up to %v, %s", b.Clearance, b.MaxInput, b.MaxOutput, tools)
	if len(k.Tags) > 0 {
		text += ", requires " + format.Tags(k.Tags)
	}
	if b.SessionMs > 0 {
		text += ", expires " + format.Elapsed(time.Duration(b.SessionMs)*time.Millisecond) + " after the call begins"
	}
	if k.Summary != "" {
		text += ", about " + terminal.CleanLine(strconv.Quote(k.Summary))
	}
	if k.Caller != "" {
		text += ", for " + terminal.CleanLine(k.Caller)
	}
	return text
}

// extent returns the size of the prompt, without what the viewer may not see.
func (p *PromptDocument) extent() string {
	hidden := func(at Piece) bool { return at.Withheld }
	if slices.ContainsFunc(p.System, hidden) || slices.ContainsFunc(p.Text, hidden) {
		return bytesize.Text(p.Bytes) + ", partial"
	}
	return bytesize.Text(p.Bytes)
}

// MaxAbsent is how many results that were not sent are named in text, and in JSON unless one task is
// explained.
const MaxAbsent = 8

func (b *Absent) names() (all []string) {
	for _, tk := range b.Results {
		all = append(all, "result of "+cmp.Or(tk.Name, tk.Title))
	}
	for _, in := range b.Inputs {
		all = append(all, "input "+in.Name)
	}
	return all
}

// writePieces writes a text range by range. Words of the builder and names in its headings are one
// range.
func writePieces(w io.Writer, pieces []Piece) {
	for len(pieces) > 0 {
		n := 1
		for n < len(pieces) && sameRange(&pieces[0], &pieces[n]) {
			n++
		}
		writeRange(w, pieces[:n])
		pieces = pieces[n:]
	}
}

func sameRange(a, b *Piece) bool {
	frame := func(p *Piece) bool { return p.Part == brief.PartFrame || p.Part == brief.PartHeading }
	return frame(a) && frame(b) || a.Source == b.Source && a.Part == b.Part && a.Withheld == b.Withheld
}

func writeRange(w io.Writer, pieces []Piece) {
	first, last := &pieces[0], &pieces[len(pieces)-1]
	from := terminal.CleanLine(format.Readers(first.From))
	framed := first.Part == brief.PartFrame || first.Part == brief.PartHeading
	if framed {
		from = "builder"
	}
	fmt.Fprintf(w, "%15s  %s\n", fmt.Sprintf("%d–%d", first.Start, last.End), from)
	var text strings.Builder
	for i := range pieces {
		switch p := &pieces[i]; {
		case !p.Withheld:
			text.WriteString(p.Words)
		default:
			text.WriteString("[not shown]")
		}
	}
	body := text.String()
	if framed {
		if body = strings.Trim(body, "\n"); body == "" {
			return
		}
	}
	for line := range strings.SplitSeq(body, "\n") {
		fmt.Fprintf(w, "%17s%s\n", "", strings.TrimRight("│ "+terminal.CleanLine(line), " "))
	}
}
