package history

import (
	"fmt"
	"io"
	"time"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
)

// A questionDocument says whom a task asked and who answered, in JSON.
type questionDocument struct {
	WaitingFor string            `json:"waitingFor,omitempty"` // the person whose answer is missing
	Tool       string            `json:"tool,omitempty"`       // whose call waits for the approval of that person
	Answered   *answeredDocument `json:"answered,omitempty"`   // nil also for an answer on the terminal of the run
}

// An answeredDocument says who answered a question, and when. The text is the result of the task.
type answeredDocument struct {
	By     string    `json:"by"`
	Time   time.Time `json:"time"`
	Reason string    `json:"reason,omitempty"` // once the result shows that the user may see it
}

// newQuestionDocument returns the document of a question; nil is none.
func newQuestionDocument(q *journal.Question) (d questionDocument) {
	switch {
	case q == nil:
	case q.Answer == nil && !q.Ended:
		d.WaitingFor, d.Tool = q.Agent, q.Tool
	case q.Answer != nil:
		d.Answered = &answeredDocument{By: q.Answer.By, Time: q.Answer.Time}
		if q.Ended {
			d.Answered.Reason = q.Answer.Reason
		}
	}
	return d
}

// writeQuestion writes who is to answer, or who answered.
func (d *questionDocument) writeQuestion(w io.Writer) {
	switch {
	case d.Tool != "":
		fmt.Fprintf(w, "a call of %s waits for the approval of %s\n", terminal.CleanLine(d.Tool), terminal.CleanLine(d.WaitingFor))
	case d.WaitingFor != "":
		fmt.Fprintf(w, "waiting for the answer of %s\n", terminal.CleanLine(d.WaitingFor))
	}
	if a := d.Answered; a != nil {
		fmt.Fprintf(w, "answered by %s, %s", terminal.CleanLine(a.By), format.Time(a.Time))
		if a.Reason != "" {
			fmt.Fprintf(w, ": %s", terminal.CleanLine(a.Reason))
		}
		fmt.Fprintln(w)
	}
}
