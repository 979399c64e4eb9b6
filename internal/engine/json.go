package engine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// separator stands between the results of one agent in agentResults.
const separator = "\n\n---\n\n"

// MarshalJSON returns what [Result.WriteJSON] writes.
func (r *Result) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := r.WriteJSON(&b)
	return b.Bytes(), err
}

// WriteJSON writes the result as one JSON object with the names of the original. It
// encodes one task and one agent at a time, so that a large result is not in memory twice.
func (r *Result) WriteJSON(w io.Writer) error {
	if r == nil {
		return errNoResult
	}
	if w == nil {
		return errors.New("write the result: the writer is nil")
	}
	out := &jsonWriter{w: bufio.NewWriter(w)}
	out.raw("{")
	out.members(struct {
		Command string `json:"command,omitempty"`
		RunID   string `json:"runId"`
		Name    string `json:"name,omitempty"`
		Status  Status `json:"status"`
		Success bool   `json:"success"`
		Goal    string `json:"goal,omitempty"`
		Output  string `json:"output"`
	}{r.Command, r.RunID, r.Name, r.Status, r.Success(), r.Goal, r.Output})
	r.writeTasks(out)
	out.raw(",")
	out.members(struct {
		Coordinator []wireStep  `json:"coordinator,omitempty"`
		Usage       llm.Usage   `json:"totalTokenUsage"`
		Context     Context     `json:"context"`
		Audit       string      `json:"audit,omitempty"`
		Errors      []TaskError `json:"errors"`
		Cause       *string     `json:"cause,omitempty"`
		Warnings    []string    `json:"warnings,omitempty"`
	}{r.wireSteps(), r.Usage, r.Context, r.Audit, orEmpty(r.Errors), textOf(r.Cause), r.Warnings})
	out.raw("}")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// textOf returns the text of an error, or nil if there is none.
func textOf(err error) *string {
	if err == nil {
		return nil
	}
	return new(err.Error())
}

// writeTasks writes the tasks and how many ended how, the results by agent, with agents in
// the order of their first task, and the results by task.
func (r *Result) writeTasks(out *jsonWriter) {
	var agents []string
	byAgent := map[string][]*TaskResult{}
	out.raw(`,"tasks":[`)
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if byAgent[t.Assignee] == nil {
			agents = append(agents, t.Assignee)
		}
		byAgent[t.Assignee] = append(byAgent[t.Assignee], t)
		out.next(i)
		out.value(t.wire())
	}
	out.raw(`],"outcomes":`)
	out.value(r.Outcomes())
	out.raw(`,"agentResults":{`)
	for i, name := range agents {
		out.next(i)
		out.value(name)
		out.raw(":")
		out.value(answerOf(byAgent[name]))
	}
	out.raw(`},"taskResults":{`)
	answered := 0
	for i := range r.Tasks {
		if r.Tasks[i].Status == task.NotNeeded {
			continue
		}
		out.next(answered)
		answered++
		out.value(string(r.Tasks[i].ID))
		out.raw(":")
		out.value(r.Tasks[i].answer())
	}
	out.raw("}")
}

// answerOf returns what an agent did in its tasks.
func answerOf(tasks []*TaskResult) wireAnswer {
	a := wireAnswer{Success: true, ToolCalls: []wireToolCall{}}
	var shown []string
	for _, t := range tasks {
		a.TokenUsage = a.TokenUsage.Add(t.Metrics.Usage)
		a.ToolCalls = append(a.ToolCalls, t.Metrics.wireCalls()...)
		if t.Messages != nil {
			a.Messages = orEmpty(a.Messages)
		}
		for _, m := range t.Messages {
			a.Messages = append(a.Messages, wireMessage{m.Role, []wireText{{"text", m.Text}}})
		}
		if t.Status != task.Completed {
			a.Success = a.Success && t.Status == task.NotNeeded
			continue
		}
		shown = append(shown, t.Result)
		if t.Structured != "" {
			a.Structured = json.RawMessage(t.Structured)
		}
	}
	a.Output = strings.Join(shown, separator)
	return a
}

// wireName is what a task is called.
type wireName struct {
	ID    task.ID `json:"id"`
	Key   string  `json:"key,omitempty"`
	Title string  `json:"title"`
	Name  string  `json:"name,omitempty"` // of an instance, by the keys of its items
}

type wireTask struct {
	wireName
	Assignee    string               `json:"assignee"`
	Role        string               `json:"role,omitempty"`
	Priority    task.Priority        `json:"priority,omitempty"`
	Metadata    map[string]any       `json:"metadata,omitempty"`
	Status      task.Status          `json:"status"`
	DependsOn   []task.ID            `json:"dependsOn"`
	Description string               `json:"description"`
	Label       label.Classification `json:"label"`
	Metrics     *wireMetrics         `json:"metrics,omitempty"`
	Result      string               `json:"result,omitempty"`
	Structured  json.RawMessage      `json:"structured,omitempty"`
	Truncated   bool                 `json:"truncated,omitempty"`
	Call        llm.CallInfo         `json:"call,omitzero"`
	Rejected    []RejectedAnswer     `json:"rejected,omitempty"`
	Error       *TaskError           `json:"error,omitempty"`
	Workspace   string               `json:"workspace,omitempty"`
	WaitingFor  string               `json:"waitingFor,omitempty"`
}

// wireMetrics has times in milliseconds since the epoch, as the original has.
type wireMetrics struct {
	StartMs    int64          `json:"startMs"`
	EndMs      int64          `json:"endMs"`
	DurationMs int64          `json:"durationMs"`
	TokenUsage llm.Usage      `json:"tokenUsage"`
	ToolCalls  []wireToolCall `json:"toolCalls"`
	Retries    int            `json:"retries"`
	Partial    bool           `json:"partial,omitempty"` // without what the caller may not see

	Interrupted int `json:"interrupted,omitempty"` // attempts that a crash ended
	TokensSaved int `json:"tokensSaved,omitempty"` // by the gate
}

// wireToolCall is a call of a tool. The name is the one that models see, as in records.
type wireToolCall struct {
	Name       string `json:"toolName"`
	DurationMs int64  `json:"durationMs"`
	IsError    bool   `json:"isError,omitempty"`
}

// wireCalls returns a list that is never nil.
func (m *Metrics) wireCalls() []wireToolCall {
	calls := make([]wireToolCall, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		calls[i] = wireToolCall{c.Tool, c.Duration.Round(time.Millisecond).Milliseconds(), c.Failed}
	}
	return calls
}

// wireStep is a step of the coordinator.
type wireStep struct {
	Step    StepKind     `json:"step"`
	Call    llm.CallInfo `json:"call,omitzero"`
	Metrics *wireMetrics `json:"metrics,omitempty"`
	Reused  *wireReuse   `json:"reused,omitempty"`
	Error   *TaskError   `json:"error,omitempty"`

	WaitingFor string `json:"waitingFor,omitempty"`
}

func (r *Result) wireSteps() (steps []wireStep) {
	for i := range r.Steps {
		s := &r.Steps[i]
		steps = append(steps, wireStep{Step: s.Kind, Call: s.Call, Metrics: s.Metrics.wire(), Reused: reuseOf(s.Reused, s.Saved), Error: s.Error, WaitingFor: s.WaitingFor})
	}
	return steps
}

// wire returns nil for work that never began.
func (m *Metrics) wire() *wireMetrics {
	if m.Attempts == 0 {
		return nil
	}
	return &wireMetrics{
		StartMs: m.Start.UnixMilli(), EndMs: m.End.UnixMilli(), DurationMs: visibility{m.Partial}.duration(m.End.Round(0).Sub(m.Start.Round(0))).Round(time.Millisecond).Milliseconds(),
		TokenUsage: m.Usage, ToolCalls: m.wireCalls(), Retries: max(m.Attempts-m.Interrupted-1, 0), Interrupted: m.Interrupted, Partial: m.Partial, TokensSaved: m.TokensSaved,
	}
}

func (t *TaskResult) wire() wireTask {
	return wireTask{
		wireName: wireName{t.ID, t.Key, t.Title, t.Name}, Assignee: t.Assignee, Role: t.Role, Priority: t.Priority, Metadata: t.Metadata,
		Status: t.Status, DependsOn: orEmpty(t.DependsOn), Description: t.Description, Label: t.Label, Result: t.Result, Structured: json.RawMessage(t.Structured), Truncated: t.Truncated, Call: t.Call, Rejected: t.Rejected, Error: t.Error, Metrics: t.Metrics.wire(), Workspace: t.Workspace,
		WaitingFor: t.WaitingFor,
	}
}

// wireAnswer is the result of one task, or the results of all tasks of one agent.
type wireAnswer struct {
	Success    bool            `json:"success"`
	Output     string          `json:"output"`
	TokenUsage llm.Usage       `json:"tokenUsage"`
	ToolCalls  []wireToolCall  `json:"toolCalls"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Truncated  bool            `json:"truncated,omitempty"`
	Reused     *wireReuse      `json:"reused,omitempty"`
	Messages   []wireMessage   `json:"messages,omitzero"` // of an agent; nil if the conversations were not recorded
}

// wireMessage is a message in the form of the original.
type wireMessage struct {
	Role    string     `json:"role"`
	Content []wireText `json:"content"`
}

type wireText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// wireReuse says where a result was taken from, and what it had taken there.
type wireReuse struct {
	Run   string    `json:"runId"`
	Saved llm.Usage `json:"tokenUsage"`
}

func reuseOf(run string, saved llm.Usage) *wireReuse {
	if run == "" {
		return nil
	}
	return &wireReuse{run, saved}
}

func (t *TaskResult) answer() wireAnswer {
	return wireAnswer{Success: t.Status == task.Completed, Output: t.Result, TokenUsage: t.Metrics.Usage, ToolCalls: t.Metrics.wireCalls(), Structured: json.RawMessage(t.Structured), Truncated: t.Truncated, Reused: reuseOf(t.Reused, t.Saved)}
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// A jsonWriter writes JSON in pieces and keeps the first error.
type jsonWriter struct {
	w   *bufio.Writer
	err error
}

func (j *jsonWriter) raw(text string) {
	if j.err == nil {
		_, j.err = j.w.WriteString(text)
	}
}

func (j *jsonWriter) value(v any) { j.write(v, 0) }

// members writes the members of an object, without the braces.
func (j *jsonWriter) members(object any) { j.write(object, len("{")) }

// write writes a value without the first and last n bytes.
func (j *jsonWriter) write(v any, n int) {
	if j.err != nil {
		return
	}
	var b []byte
	if b, j.err = json.Marshal(v); j.err == nil {
		_, j.err = j.w.Write(b[n : len(b)-n])
	}
}

// next separates the elements of a list or an object.
func (j *jsonWriter) next(i int) {
	if i > 0 {
		j.raw(",")
	}
}
