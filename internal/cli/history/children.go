package history

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
)

// A teamworkDocument says what agents did together for a task, in JSON.
type teamworkDocument struct {
	Replies    []journals.StoredWait `json:"awaitedReplies,omitempty"` // the handoffs to whose replies the task waits
	ChildCount *childCount           `json:"childCount,omitempty"`     // nil without children

	// Only if one task is shown:
	Children []childDocument  `json:"children,omitempty"` // in the order in which they were spawned
	Holders  []holderDocument `json:"holders,omitempty"`  // of the conversation of the last attempt that transferred it
}

// A childCount counts the children of a task.
type childCount struct {
	Working int `json:"working"`
	Ended   int `json:"ended"`
}

// A childDocument is a child of a task, in JSON.
type childDocument struct {
	Session   string                `json:"sessionId"`
	Part      string                `json:"part"`
	Agent     string                `json:"agent,omitempty"` // empty if the child did not begin
	Attempt   int                   `json:"attempt"`
	Delegated bool                  `json:"delegated,omitempty"` // to another agent
	Status    string                `json:"status"`              // working, complete, timeout, failed, interrupted
	Code      string                `json:"code,omitempty"`      // of the error
	Goal      string                `json:"goal,omitempty"`      // or why it is withheld
	GoalLabel *label.Classification `json:"goalLabel,omitempty"`
	Result    string                `json:"result,omitempty"` // as the parent got it, or why it is withheld; empty before the next turn of the parent
	Label     *label.Classification `json:"label,omitempty"`  // of the result
	Usage     llm.Usage             `json:"tokenUsage"`       // without that of its own children
	Partial   bool                  `json:"partial,omitempty"`
	Started   time.Time             `json:"startedAt,omitzero"`
	Ended     time.Time             `json:"endedAt,omitzero"`
}

// A holderDocument is an agent that held the conversation of a task, in JSON.
type holderDocument struct {
	Agent   string `json:"agent"`
	Session string `json:"sessionId"` // of its first prompt
	Attempt int    `json:"attempt"`
	Turn    int    `json:"turn,omitempty"` // in which it transferred the conversation; zero for the last holder
}

// addTeamwork adds for whom a task waits, and how many children it has.
func (t *TaskDocument) addTeamwork(k *journals.StoredRun, s *runstate.Task) {
	if working, ended := k.ChildCounts(s); working+ended > 0 {
		t.ChildCount = &childCount{working, ended}
	}
	t.Replies = k.Waits(s.ID)
	if len(t.Replies) > 0 && t.WaitingFor == "" {
		var agents []string
		for _, w := range t.Replies {
			if !slices.Contains(agents, w.Agent) {
				agents = append(agents, w.Agent)
			}
		}
		t.WaitingFor = strings.Join(agents, ", ")
	}
}

// addChildren adds the children of a task, and the holders of its conversation.
func (t *TaskDocument) addChildren(k *journals.StoredRun, s *runstate.Task) {
	for _, c := range k.Children(s) {
		t.Children = append(t.Children, childDocument{
			Session: c.Session, Part: c.Part, Agent: c.Agent, Attempt: c.Attempt, Delegated: c.Delegated, Status: c.Status, Code: c.Code,
			Goal: c.Goal.Text, GoalLabel: c.Goal.Label, Result: c.Result.Text, Label: c.Result.Label,
			Usage: c.Usage, Partial: c.Partial, Started: c.Started, Ended: c.Ended,
		})
	}
	for _, h := range k.Holders(s) {
		t.Holders = append(t.Holders, holderDocument(h))
	}
}

// partName names the part of an attempt that a session is.
func partName(holders trace.Holders, session, part string) string {
	return holders.Part(strings.TrimSuffix(session, part), part)
}

// writeChildren writes the holders and the children of a task as text.
func (t *TaskDocument) writeChildren(w io.Writer) {
	for _, h := range t.Holders {
		if h.Turn > 0 {
			fmt.Fprintf(w, "held by %s, who transferred it in turn %d\n", terminal.CleanLine(h.Agent), h.Turn)
		} else {
			fmt.Fprintf(w, "held by %s at the end\n", terminal.CleanLine(h.Agent))
		}
	}
	for i := range t.Children {
		t.Children[i].write(w)
	}
}

// write writes a child as text.
func (c *childDocument) write(w io.Writer) {
	took, attempt := "", ""
	if !c.Ended.IsZero() && !c.Partial {
		took = format.Elapsed(c.Ended.Sub(c.Started))
	}
	if c.Attempt > 1 {
		attempt = fmt.Sprintf("attempt %d", c.Attempt)
	}
	name := strings.TrimSpace(strings.ReplaceAll(c.Part, "/", " "))
	fmt.Fprintf(w, "\n%s\n", format.Dotted(name, attempt, c.Agent, c.outcome(), took, format.Partial(format.Tokens(c.Usage, ""), c.Partial)))
	if c.Goal != "" {
		fmt.Fprintf(w, "  goal\n%s", format.QuoteBlock(c.Goal))
	}
	if c.Result != "" {
		fmt.Fprintf(w, "  result\n%s", format.QuoteBlock(c.Result))
	}
}

// outcome returns the status, with the code of a failure.
func (c *childDocument) outcome() string {
	if c.Status == journals.ChildFailed {
		return c.Status + " " + c.Code
	}
	return c.Status
}
