package report

import (
	"io"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/task"
)

// Answer returns the result as text: the answer of the run and, if the run failed, the completed
// results that no completed task has used. Several results have their titles as headings. Output
// are the tasks whose results form the answer; there are none if the coordinator writes it.
func Answer(output []task.ID, res *engine.Result) string {
	if res.Success() || synthesized(res) {
		return res.Output
	}
	used := make(map[task.ID]bool)
	for i := range res.Tasks {
		if t := &res.Tasks[i]; t.Status == task.Completed {
			for _, up := range t.DependsOn {
				used[up] = true
			}
		}
	}
	var parts []string
	isAnswer := true // the parts are exactly the answer
	for _, t := range res.Tasks {
		wanted := slices.Contains(output, t.ID)
		if t.Status != task.Completed || t.Result == "" || used[t.ID] && !wanted {
			continue
		}
		isAnswer = isAnswer && wanted
		parts = append(parts, "# "+t.ShownName()+"\n\n"+t.Result)
	}
	if isAnswer {
		return res.Output
	}
	return strings.Join(parts, "\n\n")
}

// PrintAnswer prints the result on stdout as JSON or text, with empty lines around it on a terminal. If
// the events are on stdout, the text is on stderr.
func PrintAnswer(con *console.Console, output []task.ID, res *engine.Result, onStderr bool) error {
	if con.Settings.JSON() {
		return con.Separated(func() error { return con.PrintDocument(func(w io.Writer) error { return res.WriteJSON(w) }) })
	}
	return PrintText(con, Answer(output, res), onStderr)
}

// PrintText prints a text on stdout, or on stderr, with empty lines around it on a terminal.
func PrintText(con *console.Console, text string, onStderr bool) error {
	switch {
	case text == "":
		return nil
	case onStderr:
		con.Say("\n%s\n", strings.TrimRight(terminal.Clean(text), "\n"))
		return nil
	}
	return con.Separated(func() error { return con.PrintText(text) })
}

// synthesized reports whether the coordinator wrote an answer.
func synthesized(res *engine.Result) bool {
	n := len(res.Steps)
	return n > 0 && res.Output != "" && res.Steps[n-1].Kind == engine.StepSynthesis && res.Steps[n-1].Error == nil
}
