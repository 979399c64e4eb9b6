package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
)

// Answered says who answered a question, and when. The text is the result of the task.
type Answered struct {
	By     string    `json:"by"`
	Time   time.Time `json:"time"`
	Reason string    `json:"reason,omitempty"` // once the result shows that the user may see it

	Decision string `json:"decision,omitempty"` // of an approval that the user may see
	Approves string `json:"approves,omitempty"` // a tool, an entry of declassify, or "plan"; empty for the result of a task
}

// A Wait is a call that waits for the approval of a person, in JSON.
type Wait struct {
	Agent string `json:"agent"`
	Tool  string `json:"tool"`
}

// Asked is what people were asked about a task, in JSON.
type Asked struct {
	WaitingFor string      `json:"waitingFor,omitempty"`      // the person whose answer is missing, or the agents whose replies are
	Tool       string      `json:"tool,omitempty"`            // whose call waits for the approval of that person
	Answered   *Answered   `json:"answered,omitempty"`        // nil also for an answer on the terminal of the run
	Also       []Wait      `json:"alsoWaitingFor,omitempty"`  // the other calls of the turn that wait for an approval
	Earlier    []*Answered `json:"answeredEarlier,omitempty"` // to what the task asked before

	Open int `json:"-"` // questions without an answer
}

// addQuestions adds what a task asked last: one question, or those about the calls of one turn.
func (a *Asked) addQuestions(list []*runstate.Question) {
	for _, q := range list {
		for i := range q.Earlier {
			a.Earlier = append(a.Earlier, newAnswered(&q.Earlier[i]))
		}
	}
	for _, q := range list {
		if q.Open() {
			a.Open++
		}
		switch {
		case q.Open() && a.WaitingFor == "":
			a.WaitingFor, a.Tool = q.Agent, q.Tool
		case q.Open():
			a.Also = append(a.Also, Wait{q.Agent, q.Tool})
		case q.Answer != nil:
			if a.Answered != nil {
				a.Earlier = append(a.Earlier, a.Answered)
			}
			a.Answered = newAnswered(q)
		}
	}
}

// newAnswered returns the document of the answer to a question.
func newAnswered(q *runstate.Question) *Answered {
	a := &Answered{By: q.Answer.By, Time: q.Answer.Time, Approves: cmp.Or(q.Tool, q.Approval)}
	if a.Approves != "" {
		a.decide(q)
	} else if q.Ended {
		a.Reason = q.Answer.Reason
	}
	return a
}

// hideReasons removes what people wrote about a result that the user may not see.
func (a *Asked) hideReasons() {
	for _, of := range append(slices.Clip(a.Earlier), a.Answered) {
		if of != nil {
			of.Reason = ""
		}
	}
}

// decide adds what a person decided about a call, a plan or an entry of the policy, and the reasons: that
// in the form and that for the record. Nothing has a result to tell who may see them, so it is the
// label of what was shown that does, and whether the user may see the task.
func (a *Answered) decide(q *runstate.Question) {
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
