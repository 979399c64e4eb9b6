package trace_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/promptview"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// canary is what no reader below confidential may see; this one is cleared for internal.
const canary = "CANARY-7c1f"

// story is a run of four tasks: facts and a check are made from an input, and
// a score from both; the letter is held.
type story struct {
	t       testing.TB
	w       *trace.Writer
	seq     int
	records []record.Prompt
}

var (
	facts  = task.Task{ID: task.NewID("Extract facts"), Spec: task.Spec{Title: "Extract facts", Assignee: "intake", Description: "List the facts of 2026.", Source: provenance.Source{Params: []provenance.Param{{Name: "year", Start: 18, End: 22}}, Origin: provenance.Position{File: "team.yaml", Line: 14}}}}
	check  = task.Task{ID: task.NewID("Check the blacklist"), Spec: task.Spec{Title: "Check the blacklist", Assignee: "security", Description: "Look the name up.", Source: provenance.Source{Origin: provenance.Position{File: "team.yaml", Line: 18}}}}
	score  = task.Task{ID: task.NewID("Score fraud"), Spec: task.Spec{Title: "Score fraud", Assignee: "fraud", Description: "Score the risk between 0 and 1.", Source: provenance.Source{Origin: provenance.Position{File: "team.yaml", Line: 22}}}}
	letter = task.Task{ID: task.NewID("Write letter"), Spec: task.Spec{Title: "Write letter", Assignee: "letters", Description: "Tell the customer.", Source: provenance.Source{Origin: provenance.Position{File: "team.yaml", Line: 27}}}}
)

var given = trace.Options{
	Name: "claims", Time: noon,
	Tasks: []trace.Task{
		{ID: facts.ID, Key: "facts", Title: facts.Title, Assignee: "intake", Line: "team.yaml:14"},
		{ID: check.ID, Title: check.Title, Assignee: "security", Line: "team.yaml:18"},
		{ID: score.ID, Key: "score", Title: score.Title, Assignee: "fraud", Line: "team.yaml:22"},
		{ID: letter.ID, Title: letter.Title, Assignee: "letters", Line: "team.yaml:27"},
	},
	Inputs: []trace.Input{{Name: "claim", Classification: label.Internal, Line: "team.yaml:4"}, {Name: "policy", Classification: label.Internal, Line: "team.yaml:5"}},
}

// offer is a piece of context on its way to a task.
type offer struct {
	gate.Offer
	line string
}

// result offers the result of a task.
func result(t testing.TB, of *task.Task, level label.Classification, text, line string) offer {
	return offer{gate.Offer{Source: gate.Source{Kind: handoff.Dependency, Name: string(of.ID)}, Title: of.Title, Assignee: of.Assignee, Status: task.Completed, Envelope: sealed(t, of.Assignee, level, text)}, line}
}

func input(t testing.TB, name string, level label.Classification, text, line string) offer {
	return offer{gate.Offer{Source: gate.Source{Kind: handoff.Input, Name: name}, Title: name, Envelope: sealed(t, handoff.User, level, text)}, line}
}

func sealed(t testing.TB, from string, level label.Classification, text string) *envelope.Envelope {
	e, err := envelope.New(envelope.Header{ID: envelope.ID("e/" + from), Producer: from, Run: "r1", Classification: level, CreatedAt: noon}, envelope.Text(text))
	require.NoError(t, err)
	return e
}

// record gates what is offered to a task and builds its prompt.
func recordOf(t testing.TB, of *task.Task, system string, offers ...offer) record.Prompt {
	level := label.Public
	var grants []gate.Grant
	for _, o := range offers {
		level = max(level, o.Envelope.Classification())
		grants = append(grants, gate.WholeOf(o.Source, o.line))
	}
	k, err := gate.Negotiate(gate.Request{Session: "r1/" + string(of.ID) + "/1", Caller: handoff.User, Run: "r1", Task: of.ID, Classification: level, Grants: grants},
		&gate.Capabilities{Agent: of.Assignee, Accepts: label.Secret, Produces: label.Secret})
	require.NoError(t, err)
	compartment := gate.Compartment{Contract: k}
	b := brief.Brief{Contract: k, Task: of, System: system, SystemOrigin: "team.yaml:9"}
	var r record.Prompt
	for i := range offers {
		o := &offers[i]
		s, err := compartment.GateOutbound(t.Context(), &o.Offer, noon)
		require.NoError(t, err)
		d := s.Decision()
		r.Handoffs = append(r.Handoffs, event.Handoff{
			Session:   k.Session,
			From:      d.From,
			To:        d.To,
			Task:      d.Task,
			Source:    d.Source,
			Label:     d.Before,
			Delivered: d.After,
			Before:    event.Extent{Outputs: 1, Tokens: d.BytesBefore / 4, Bytes: d.BytesBefore},
			After:     event.Extent{Outputs: 1, Tokens: d.BytesAfter / 4, Bytes: d.BytesAfter},
			Redacted:  d.Redacted,
			Time:      noon,
			Ruling:    event.Ruling{Verdict: d.Verdict, Reason: d.Reason, Mode: handoff.Full, Rule: d.Rule, Line: d.Line},
		})
		if o.Source.Kind == handoff.Input {
			b.Inputs = append(b.Inputs, s)
		} else {
			b.Dependencies = append(b.Dependencies, s)
		}
	}
	p, whole, err := prompt.Build(b)
	require.NoError(t, err)
	shown, _ := promptview.Show(p, whole, label.Internal, nil)
	r.Prompt = &shown
	return r
}

// event tells the writer of an event.
func (s *story) event(kind event.Type, of *task.Task) {
	s.seq++
	e := event.Event{Seq: s.seq, Type: kind, Time: noon.Add(time.Duration(s.seq) * time.Second), Run: "r1"}
	if of != nil {
		e.Task, e.Title, e.Agent, e.Attempt = of.ID, of.Title, of.Assignee, 1
	}
	if kind == event.TaskComplete {
		e.Status, e.Duration = task.Completed, 1500*time.Millisecond
	}
	s.w.Event(e)
}

// send records a prompt, has it sent and its task done.
func (s *story) send(of *task.Task, r record.Prompt) {
	require.NoError(s.t, s.w.Record(s.t.Context(), r))
	s.records = append(s.records, r)
	s.event(event.AgentStart, of)
	s.event(event.TaskComplete, of)
}

const (
	token    = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
	claim    = "Policy 4417, burst pipe.\nThe portal's key is " + token + "."
	findings = "Found: policy 4417,\n  burst pipe. Nobody was at home."
	risk     = `The risk is 0.2, since "Nobody was at home" is usual.`
)

// happen tells all but the result.
func (s *story) happen() {
	t := s.t
	s.event(event.RunStart, nil)
	s.send(&facts, recordOf(t, &facts, "You list facts.", input(t, "claim", label.Internal, claim, "team.yaml:15")))
	s.send(&check, recordOf(t, &check, "", input(t, "claim", label.Internal, claim, "team.yaml:19")))
	hidden := result(t, &check, label.Confidential, canary+" is on the list.", "team.yaml:24")
	s.send(&score, recordOf(t, &score, "You look for fraud.", result(t, &facts, label.Internal, findings, "team.yaml:23"), hidden))
	s.event(event.TaskReady, &letter)
	require.NoError(t, s.w.Record(t.Context(), record.Prompt{Handoffs: []event.Handoff{{
		Session:   "r1/" + string(letter.ID) + "/1",
		From:      "fraud",
		To:        "letters",
		Task:      letter.ID,
		Source:    gate.Source{Kind: handoff.Dependency, Name: string(score.ID)},
		Label:     label.Confidential,
		Delivered: label.Confidential,
		Before:    event.Extent{Outputs: 1, Tokens: 12, Bytes: 50},
		Time:      noon,
		Ruling:    event.Ruling{Verdict: gate.Withheld, Reason: gate.ReasonClearance, Mode: handoff.Full, Rule: gate.RuleClearance, Line: "team.yaml:28"},
	}}}))
	s.event(event.Error, &letter)
	s.event(event.RunComplete, nil)
}

// tell writes the whole story.
func tell(t testing.TB) (file []byte, records []record.Prompt) {
	var out bytes.Buffer
	s := &story{t: t, w: trace.NewWriter(&out, given)}
	s.happen()
	head, err := s.w.Close(outcome(), noon.Add(time.Minute))
	require.NoError(t, err)
	require.NotEmpty(t, head.String())
	return out.Bytes(), s.records
}

// outcome is the result in its form for the caller.
func outcome() any {
	done := func(of *task.Task, level, text string) map[string]any {
		return map[string]any{"id": of.ID, "title": of.Title, "assignee": of.Assignee, "status": task.Completed, "label": level, "result": text, "metrics": map[string]int{"retries": 0}}
	}
	failed := map[string]any{"id": letter.ID, "title": letter.Title, "assignee": letter.Assignee, "status": task.Failed, "label": "public"}
	return map[string]any{"runId": "r1", "status": "error", "output": "", "tasks": []any{
		done(&facts, "internal", findings), done(&check, "confidential", "[withheld: confidential]"), done(&score, "internal", risk), failed,
	}}
}

func read(t testing.TB, file []byte) *trace.Trace {
	tr, err := trace.Read(bytes.NewReader(file))
	require.NoError(t, err)
	return tr
}

// requireGolden compares with a file of testdata, or rewrites it.
func requireGolden(t *testing.T, name string, got []byte) {
	path := "testdata/" + name
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// full is a writer that takes so many writes and then no more.
type full struct {
	bytes.Buffer
	writes int
	calls  int
	syncs  int
}

var errFull = fmt.Errorf("no space left")

func (f *full) Write(p []byte) (int, error) {
	if f.calls++; f.calls > f.writes {
		return 0, errFull
	}
	return f.Buffer.Write(p)
}

func (f *full) Sync() error { f.syncs++; return nil }
