package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// The layout of the end of a run: 80 columns, and few enough rows for a terminal of 24 lines.
const (
	lineWidth   = 80
	maxWithheld = 6
	maxAgent    = 16
	maxFrom     = 26
)

// A Withheld collects from the events of a run what its agents did not see. The zero value is
// ready for use, and safe for concurrent use.
type Withheld struct {
	mu       sync.Mutex // guards what follows
	found    []withheldRow
	attempts map[ruledSource]string // the newest, of what has rows
	redacted redact.Counts
	hidden   bool // decisions about values above the user's clearance do not say what was withheld of them
}

// A ruledSource is a piece of context that one agent may get for one task.
type ruledSource struct {
	agent  string
	task   task.ID
	source gate.Source
}

// A withheldRow is what one agent did not see of one piece of context.
type withheldRow struct {
	ruledSource        // its task is empty if a plan proved it; the name of its source is a task's ID if it is a result
	attempt     string // empty if a plan proved it
	from        string // the name for people, if it is not that of source
	what        string // if it is not paths
	paths       []task.Path
	line        string // where the rule is written, as file:line
}

// Observe collects decisions of the gate about context for agents.
func (w *Withheld) Observe(e event.Event) {
	if e.Type == event.Handed {
		w.take(e.Handoff)
	}
}

// AddStored collects decisions that earlier processes made about a resumed run, in their order. Those of
// a later attempt at a task, also one that Observe gets, replace those about the same context.
func (w *Withheld) AddStored(list []event.Handoff) {
	for i := range list {
		w.take(&list[i])
	}
}

// take collects one decision.
func (w *Withheld) take(h *event.Handoff) {
	if h.To == handoff.User || h.Source.Kind == handoff.Condition { // agents do not read conditions
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	about, attempt := ruledSource{h.To, h.Task, h.Source}, attemptOf(h)
	if _, known := w.attempts[about]; known {
		w.attempts[about] = attempt
	}
	for kind, n := range h.Redacted {
		if w.redacted == nil {
			w.redacted = redact.Counts{}
		}
		w.redacted[kind] += n
	}
	w.hidden = w.hidden || h.Coarse
	row := withheldRow{ruledSource: about, attempt: attempt, line: h.Line}
	switch {
	case h.Verdict != gate.Passed:
		row.what = "all of it"
	case len(h.After.Excluded) > 0:
		row.paths = h.After.Excluded
	default:
		return
	}
	w.found = append(w.found, row)
	if w.attempts == nil {
		w.attempts = map[ruledSource]string{}
	}
	w.attempts[about] = attempt
}

// attemptOf returns the session of the attempt that a decision is of, without its turn, child or
// translation.
func attemptOf(h *event.Handoff) string {
	before, after, ok := strings.Cut(h.Session, "/"+string(h.Task)+"/")
	if !ok {
		return h.Session
	}
	number, _, _ := strings.Cut(after, "/")
	return before + "/" + number
}

// rows returns what was withheld from the newest attempt at each task. What several tasks of an agent did not
// get is there once.
func (w *Withheld) rows() (rows []withheldRow) {
	type content struct {
		agent, from, what, paths string
		source                   gate.Source
	}
	seen := map[content]bool{}
	for _, r := range w.found {
		if r.attempt != w.attempts[r.ruledSource] {
			continue
		}
		of := content{r.agent, r.from, r.what, fmt.Sprintf("%q", r.paths), r.source}
		if !seen[of] {
			seen[of] = true
			rows = append(rows, r)
		}
	}
	return rows
}

// addProven adds what a plan proved before the run started: whole inputs and results that a reader
// never gets.
func (w *Withheld) addProven(found []engine.Finding) {
	for i := range found {
		a := &found[i].Assertion
		if !found[i].Holds || a.Subject.Path != "" || a.Subject.Kind == flow.Property {
			continue
		}
		from := a.Subject.Name
		if a.Subject.Kind == flow.OfInput {
			from = "input " + from
		}
		w.found = append(w.found, withheldRow{ruledSource: ruledSource{agent: a.Reader}, from: from, what: "all of it, checked before start", line: a.Line})
	}
}

// choose returns those of all rows to show, in the order of their lines: one for each agent, then others
// as long as there is room.
func choose(rows []withheldRow) []withheldRow {
	all := slices.Clone(rows)
	slices.SortStableFunc(all, func(a, b withheldRow) int {
		return cmp.Or(cmp.Compare(a.lineNumber(), b.lineNumber()), cmp.Compare(a.line, b.line), cmp.Compare(a.agent, b.agent))
	})
	var first, other []withheldRow
	agents := map[string]bool{}
	for _, r := range all {
		if agents[r.agent] {
			other = append(other, r)
		} else {
			first = append(first, r)
		}
		agents[r.agent] = true
	}
	if len(first)+len(other) <= maxWithheld {
		return all
	}
	chosen := append(first, other...)[:maxWithheld]
	slices.SortStableFunc(chosen, func(a, b withheldRow) int { return cmp.Compare(a.lineNumber(), b.lineNumber()) })
	return chosen
}

// lineNumber returns the number of the line that a row's rule is written in; 0 if it is unknown.
func (r *withheldRow) lineNumber() int {
	_, number, _ := cutLast(r.line, ":")
	n, _ := strconv.Atoi(number)
	return n
}

// NarrowedTask returns the last completed task whose agent saw only part of something; nil if
// there is none.
func (w *Withheld) NarrowedTask(res *engine.Result) *engine.TaskResult {
	narrowed := map[task.ID]bool{}
	for _, r := range w.found {
		if r.attempt == w.attempts[r.ruledSource] {
			narrowed[r.task] = true
		}
	}
	for i := range slices.Backward(res.Tasks) {
		if t := &res.Tasks[i]; t.Status == task.Completed && narrowed[t.ID] {
			return t
		}
	}
	return nil
}

// writeRows writes the table: which agent did not see what, from where, and by which line of the spec or
// of another policy.
func writeRows(out io.Writer, rows []withheldRow, spec string, titles map[task.ID]string) {
	shown := choose(rows)
	if len(shown) == 0 {
		return
	}
	file := fileOf(shown, spec)
	cells := make([][3]string, len(shown))
	agents, froms, lines := len("AGENT"), len("FROM"), len("LINE")
	for i, r := range shown {
		cells[i] = [3]string{terminal.Clip(terminal.CleanLine(format.Readers(r.agent)), maxAgent), terminal.Clip(terminal.CleanLine(format.Readers(r.sourceName(titles))), maxFrom), r.lineIn(file)}
		agents, froms, lines = max(agents, terminal.Width(cells[i][0])), max(froms, terminal.Width(cells[i][1])), max(lines, terminal.Width(cells[i][2]))
	}
	room := lineWidth - 1 - 2 - agents - 2 - 2 - froms - 2 - lines
	widest := len("WITHHELD")
	whats := make([]string, len(shown))
	for i, r := range shown {
		whats[i] = r.text(room)
		widest = max(widest, terminal.Width(whats[i]))
	}
	row := func(agent, what, from, line string) {
		fmt.Fprintf(out, "  %s  %s  %s  %*s\n", terminal.Pad(agent, agents), terminal.Pad(what, widest), terminal.Pad(from, froms), lines, line)
	}
	heading := "What the agents did not see"
	if file != "" {
		heading += " (rules: " + terminal.CleanLine(file) + ")"
	}
	fmt.Fprintf(out, "\n%s\n", terminal.Clip(heading, lineWidth))
	row("AGENT", "WITHHELD", "FROM", "LINE")
	for i, c := range cells {
		row(c[0], whats[i], c[1], c[2])
	}
	if more := len(rows) - len(shown); more > 0 {
		fmt.Fprintf(out, "  … and %d more\n", more)
	}
}

// sourceName names where a row's context comes from.
func (r *withheldRow) sourceName(titles map[task.ID]string) string {
	switch r.source.Kind {
	case handoff.Dependency, handoff.Files, handoff.Folder:
		return cmp.Or(titles[task.ID(r.source.Name)], r.source.Name)
	case handoff.Goal, handoff.Roster:
		return "the " + string(r.source.Kind)
	}
	if r.from != "" {
		return r.from
	}
	return string(r.source.Kind) + " " + r.source.Name
}

// text says what is withheld, in at most room cells.
func (r *withheldRow) text(room int) string {
	if r.what != "" {
		return terminal.Clip(r.what, room)
	}
	text, more := "", ""
	for i, p := range r.paths {
		if more = ""; i < len(r.paths)-1 {
			more = fmt.Sprintf(" +%d", len(r.paths)-1-i)
		}
		next := strings.TrimSpace(text + " " + terminal.CleanLine(string(p)))
		if terminal.Width(next+more) > room {
			if text == "" {
				return terminal.Clip(next, room)
			}
			return text + fmt.Sprintf(" +%d", len(r.paths)-i)
		}
		text = next
	}
	return text
}

// fileOf returns the file that all rules of these rows are written in, which is the spec if they are
// written in none; empty if they are in several.
func fileOf(rows []withheldRow, spec string) string {
	found := ""
	for _, r := range rows {
		file, _, ok := cutLast(r.line, ":")
		if ok && found != "" && file != found {
			return ""
		}
		if ok {
			found = file
		}
	}
	return cmp.Or(found, spec)
}

// lineIn returns the number of the line that a rule is written in, and its file unless that is the one
// of the heading.
func (r *withheldRow) lineIn(heading string) string {
	file, number, ok := cutLast(r.line, ":")
	switch {
	case !ok:
		return terminal.Clip(terminal.CleanLine(r.line), maxAgent)
	case file == heading:
		return number
	}
	if _, base, ok := cutLast(file, "/"); ok {
		file = base
	}
	return terminal.Clip(terminal.CleanLine(file), maxAgent-len(number)) + ":" + number
}

// cutLast cuts a text around the last separator.
func cutLast(text, separator string) (before, after string, ok bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// counted counts the values that were withheld, that placeholders replaced, with their kinds, and that rules revealed.
func (w *Withheld) counted(c *event.Context) string {
	var all []string
	add := func(n int, what string) {
		count := format.Number(n)
		if len(all) == 0 {
			count = format.Plural(n, "value")
		}
		all = append(all, count+" "+what)
	}
	if c.Withheld > 0 {
		add(c.Withheld, "withheld")
	}
	if c.Redacted+c.Revealed > 0 {
		what := "redacted"
		if kinds := slices.Sorted(maps.Keys(w.redacted)); len(kinds) > 0 {
			what += " (" + format.List(format.Kinds(kinds), 4) + ")"
		}
		add(c.Redacted, what)
	}
	if c.Revealed > 0 {
		add(c.Revealed, "revealed by rules")
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, ", ") + "."
}
