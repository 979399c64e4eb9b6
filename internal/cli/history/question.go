package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
)

// A questionDocument says whom a task asked and who answered, in JSON.
type questionDocument struct {
	WaitingFor string            `json:"waitingFor,omitempty"` // the person whose answer is missing, or the agents whose replies are
	Tool       string            `json:"tool,omitempty"`       // whose call waits for the approval of that person
	Answered   *answeredDocument `json:"answered,omitempty"`   // nil also for an answer on the terminal of the run

	Also    []waitDocument      `json:"alsoWaitingFor,omitempty"`  // the other calls of the turn that wait for an approval
	Earlier []*answeredDocument `json:"answeredEarlier,omitempty"` // to what the task asked before
}

// An answeredDocument says who answered a question, and when. The text is the result of the task.
type answeredDocument struct {
	By     string    `json:"by"`
	Time   time.Time `json:"time"`
	Reason string    `json:"reason,omitempty"` // once the result shows that the user may see it

	Decision string `json:"decision,omitempty"` // of an approval that the user may see
	Approves string `json:"approves,omitempty"` // a tool, an entry of declassify, or "plan"; empty for the result of a task
}

// A waitDocument is a call that waits for the approval of a person, in JSON.
type waitDocument struct {
	Agent string `json:"agent"`
	Tool  string `json:"tool"`
}

// newQuestionDocument returns the document of what a task asked last: one question, or those about the calls
// of one turn.
func newQuestionDocument(list []*runstate.Question) (d questionDocument) {
	for _, q := range list {
		for i := range q.Earlier {
			d.Earlier = append(d.Earlier, newAnsweredDocument(&q.Earlier[i]))
		}
	}
	for _, q := range list {
		switch {
		case q.Open() && d.WaitingFor == "":
			d.WaitingFor, d.Tool = q.Agent, q.Tool
		case q.Open():
			d.Also = append(d.Also, waitDocument{q.Agent, q.Tool})
		case q.Answer != nil:
			if d.Answered != nil {
				d.Earlier = append(d.Earlier, d.Answered)
			}
			d.Answered = newAnsweredDocument(q)
		}
	}
	return d
}

// newAnsweredDocument returns the document of the answer to a question.
func newAnsweredDocument(q *runstate.Question) *answeredDocument {
	a := &answeredDocument{By: q.Answer.By, Time: q.Answer.Time, Approves: cmp.Or(q.Tool, q.Approval)}
	if a.Approves != "" {
		a.decide(q)
	} else if q.Ended {
		a.Reason = q.Answer.Reason
	}
	return a
}

// hideReasons removes what people wrote about a result that the user may not see.
func (d *questionDocument) hideReasons() {
	for _, a := range append(slices.Clip(d.Earlier), d.Answered) {
		if a != nil {
			a.Reason = ""
		}
	}
}

// decide adds what a person decided about a call, a plan or an entry of the policy, and the reasons: that
// in the form and that for the record. Nothing has a result to tell who may see them, so it is the
// label of what was shown that does, and whether the user may see the task.
func (a *answeredDocument) decide(q *runstate.Question) {
	if q.Schema == "" || q.Label > label.Confidential {
		return
	}
	var form struct{ Decision, Reason string }
	if json.Unmarshal([]byte(q.Answer.Text), &form) == nil {
		a.Decision, a.Reason = form.Decision, form.Reason
	}
	if q.Answer.Reason != a.Reason && q.Answer.Reason != "" { // the command fills both with one text
		a.Reason = strings.TrimPrefix(a.Reason+"; "+q.Answer.Reason, "; ")
	}
}

// writeQuestion writes who is to answer, or to reply to a handoff, or who answered.
func (d *questionDocument) writeQuestion(w io.Writer, replies bool) {
	switch {
	case d.Tool != "":
		fmt.Fprintf(w, "a call of %s waits for the approval of %s\n", terminal.CleanLine(d.Tool), terminal.CleanLine(d.WaitingFor))
	case d.WaitingFor != "" && replies:
		fmt.Fprintf(w, "waiting for a reply of %s\n", terminal.CleanLine(d.WaitingFor))
	case d.WaitingFor != "":
		fmt.Fprintf(w, "waiting for the answer of %s\n", terminal.CleanLine(d.WaitingFor))
	}
	for _, also := range d.Also {
		fmt.Fprintf(w, "a call of %s waits for the approval of %s\n", terminal.CleanLine(also.Tool), terminal.CleanLine(also.Agent))
	}
	for _, a := range append(slices.Clip(d.Earlier), d.Answered) {
		if a != nil {
			a.write(w)
		}
	}
}

// write writes who answered what.
func (a *answeredDocument) write(w io.Writer) {
	if a.Approves != "" {
		fmt.Fprintf(w, "approval of %s ", terminal.CleanLine(a.Approves))
	}
	fmt.Fprintf(w, "answered by %s, %s", terminal.CleanLine(a.By), format.Time(a.Time))
	if a.Decision != "" {
		fmt.Fprintf(w, ": %s", terminal.CleanLine(a.Decision))
	}
	if a.Reason != "" {
		fmt.Fprintf(w, ": %s", terminal.CleanLine(a.Reason))
	}
	fmt.Fprintln(w)
}
