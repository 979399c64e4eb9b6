package engine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// separator separates the results of one agent in agentResults.
const separator = "\n\n---\n\n"

// MarshalJSON returns what [Result.WriteJSON] writes.
func (r *Result) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := r.WriteJSON(&b)
	return b.Bytes(), err
}

// WriteJSON writes the result as one JSON object with the names of the
// original, piece by piece, so that a large result is never in memory twice.
func (r *Result) WriteJSON(w io.Writer) error {
	if r == nil {
		return errNoResult
	}
	if w == nil {
		return errors.New("write the result: the writer is nil")
	}
	out := &jsonWriter{w: bufio.NewWriter(w), first: true}
	out.raw("{")
	if r.Command != "" {
		out.member("command", r.Command)
	}
	out.member("runId", r.RunID)
	if r.Name != "" {
		out.member("name", r.Name)
	}
	out.member("status", r.Status)
	out.member("success", r.Success())
	if r.Goal != "" {
		out.member("goal", r.Goal)
	}
	out.long("output", r.Output)
	r.writeTasks(out)
	if len(r.Steps) > 0 {
		out.key("coordinator")
		out.raw("[")
		for i := range r.Steps {
			out.next(i)
			out.value(r.Steps[i].wire())
		}
		out.raw("]")
	}
	out.member("totalTokenUsage", r.Usage)
	out.member("context", r.Context)
	if r.Audit != "" {
		out.member("audit", r.Audit)
	}
	out.member("errors", orEmpty(r.Errors))
	if r.Cause != nil {
		out.member("cause", r.Cause.Error())
	}
	if len(r.Warnings) > 0 {
		out.member("warnings", r.Warnings)
	}
	out.raw("}")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// writeAgents joins the results of each agent, agents in the order of their first task.
func (r *Result) writeAgents(out *jsonWriter) {
	var names []string
	tasks := map[string][]*TaskResult{}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if tasks[t.Assignee] == nil {
			names = append(names, t.Assignee)
		}
		tasks[t.Assignee] = append(tasks[t.Assignee], t)
	}
	out.key("agentResults")
	out.raw("{")
	for i, name := range names {
		out.next(i)
		out.value(name)
		out.raw(":{")
		success, usage := true, llm.Usage{}
		var last *TaskResult // with a structured result
		for _, t := range tasks[name] {
			success = success && t.Status == task.Completed
			usage = usage.Add(t.Metrics.Usage)
			if t.Status == task.Completed && t.Structured != "" {
				last = t
			}
		}
		out.first = true
		out.member("success", success)
		out.key("output")
		out.raw(`"`)
		shown := 0
		for _, t := range tasks[name] {
			if t.Status != task.Completed {
				continue
			}
			if shown > 0 {
				out.text(separator)
			}
			out.text(t.Result)
			shown++
		}
		out.raw(`"`)
		out.member("tokenUsage", usage)
		out.member("toolCalls", []string{})
		if last != nil {
			out.member("structured", json.RawMessage(last.Structured))
		}
		writeMessages(out, tasks[name])
		out.raw("}")
	}
	out.raw("}")
	out.first = false
}

// writeMessages writes the messages of the tasks of an agent in the form of the
// original, if there are any.
func writeMessages(out *jsonWriter, tasks []*TaskResult) {
	if !slices.ContainsFunc(tasks, func(t *TaskResult) bool { return t.Messages != nil }) {
		return
	}
	out.key("messages")
	out.raw("[")
	n := 0
	for _, t := range tasks {
		for _, m := range t.Messages {
			out.next(n)
			out.raw(`{"role":`)
			out.value(m.Role)
			out.raw(`,"content":[{"type":"text","text":"`)
			out.text(m.Text)
			out.raw(`"}]}`)
			n++
		}
	}
	out.raw("]")
}

type wireTask struct {
	ID          task.ID              `json:"id"`
	Key         string               `json:"key,omitempty"`
	Title       string               `json:"title"`
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
}

// wireMetrics has times in milliseconds since the epoch, as the original has.
type wireMetrics struct {
	StartMs    int64     `json:"startMs"`
	EndMs      int64     `json:"endMs"`
	DurationMs int64     `json:"durationMs"`
	TokenUsage llm.Usage `json:"tokenUsage"`
	ToolCalls  []string  `json:"toolCalls"`
	Retries    int       `json:"retries"`
	Rounded    bool      `json:"rounded,omitempty"` // the tokens are estimates

	Interrupted int `json:"interrupted,omitempty"` // attempts that a crash ended
}

// wireStep is a step of the coordinator.
type wireStep struct {
	Step    StepKind     `json:"step"`
	Call    llm.CallInfo `json:"call,omitzero"`
	Metrics *wireMetrics `json:"metrics,omitempty"`
	Reused  *wireReuse   `json:"reused,omitempty"`
	Error   *TaskError   `json:"error,omitempty"`
}

func (s *Step) wire() wireStep {
	return wireStep{Step: s.Kind, Call: s.Call, Metrics: s.Metrics.wire(), Reused: reuseOf(s.Reused, s.Saved), Error: s.Error}
}

// wire returns nil for work that never began.
func (m *Metrics) wire() *wireMetrics {
	if m.Attempts == 0 {
		return nil
	}
	return &wireMetrics{
		StartMs: m.Start.UnixMilli(), EndMs: m.End.UnixMilli(), DurationMs: m.End.Round(0).Sub(m.Start.Round(0)).Round(time.Millisecond).Milliseconds(),
		TokenUsage: m.Usage, ToolCalls: []string{}, Retries: max(m.Attempts-m.Interrupted-1, 0), Interrupted: m.Interrupted, Rounded: m.Rounded,
	}
}

func (t *TaskResult) wire() wireTask {
	return wireTask{
		ID: t.ID, Key: t.Key, Title: t.Title, Assignee: t.Assignee, Role: t.Role, Priority: t.Priority, Metadata: t.Metadata,
		Status: t.Status, DependsOn: orEmpty(t.DependsOn), Description: t.Description, Label: t.Label, Result: t.Result, Structured: json.RawMessage(t.Structured), Truncated: t.Truncated, Call: t.Call, Rejected: t.Rejected, Error: t.Error, Metrics: t.Metrics.wire(),
	}
}

type wireAnswer struct {
	Success    bool            `json:"success"`
	Output     string          `json:"output"`
	TokenUsage llm.Usage       `json:"tokenUsage"`
	ToolCalls  []string        `json:"toolCalls"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Truncated  bool            `json:"truncated,omitempty"`
	Reused     *wireReuse      `json:"reused,omitempty"`
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
	return wireAnswer{Success: t.Status == task.Completed, Output: t.Result, TokenUsage: t.Metrics.Usage, ToolCalls: []string{}, Structured: json.RawMessage(t.Structured), Truncated: t.Truncated, Reused: reuseOf(t.Reused, t.Saved)}
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// A jsonWriter writes JSON in pieces and keeps the first error.
type jsonWriter struct {
	w     *bufio.Writer
	err   error
	first bool // no member of the present object has been written
}

func (j *jsonWriter) raw(text string) {
	if j.err == nil {
		_, j.err = j.w.WriteString(text)
	}
}

func (j *jsonWriter) value(v any) {
	if j.err != nil {
		return
	}
	b, err := json.Marshal(v)
	if err != nil {
		j.err = err
		return
	}
	_, j.err = j.w.Write(b)
}

// chunk is how much of a long text is escaped at a time.
const chunk = 64 << 10

// text writes the inside of a JSON string.
func (j *jsonWriter) text(s string) {
	for len(s) > 0 && j.err == nil {
		end := min(len(s), chunk)
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end++
		}
		b, err := json.Marshal(s[:end])
		if err != nil {
			j.err = err
			return
		}
		_, j.err = j.w.Write(b[1 : len(b)-1])
		s = s[end:]
	}
}

// long writes a member whose text may be large.
func (j *jsonWriter) long(name, text string) {
	j.key(name)
	j.raw(`"`)
	j.text(text)
	j.raw(`"`)
}

// key opens a member of the present object.
func (j *jsonWriter) key(name string) {
	if !j.first {
		j.raw(",")
	}
	j.first = false
	j.value(name)
	j.raw(":")
}

func (j *jsonWriter) member(name string, v any) {
	j.key(name)
	j.value(v)
}

// next separates the elements of a list or a map that is written by hand.
func (j *jsonWriter) next(i int) {
	if i > 0 {
		j.raw(",")
	}
}

// writeTasks writes the tasks and how many ended how, what each agent did, and the
// results by task.
func (r *Result) writeTasks(out *jsonWriter) {
	out.key("tasks")
	out.raw("[")
	for i := range r.Tasks {
		out.next(i)
		out.value(r.Tasks[i].wire())
	}
	out.raw("]")
	out.member("outcomes", r.Outcomes())
	r.writeAgents(out)
	out.key("taskResults")
	out.raw("{")
	for i := range r.Tasks {
		t := &r.Tasks[i]
		out.next(i)
		out.value(string(t.ID))
		out.raw(":")
		out.value(t.answer())
	}
	out.raw("}")
}
