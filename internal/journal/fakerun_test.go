package journal_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// withoutChanges returns the entries of a log that are no changes of tasks.
func withoutChanges(log []record.Entry) []record.Entry {
	return slices.DeleteFunc(slices.Clone(log), func(e record.Entry) bool { return e.Change != nil })
}

// noon is when a [fakeRun] begins.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 123456789, time.UTC)

// A fakeRun makes up the entries of a run: prompts that passed the gate, and varied prose.
// Equal seeds give equal entries. It is not safe for concurrent use.
type fakeRun struct {
	Run   string
	Label label.Classification // of all texts; in prompts confidential at most
	rng   *rand.Rand
	words []string
	seq   int
}

// newFakeRun returns the entries of a run.
func newFakeRun(run string, seed uint64) *fakeRun {
	f := &fakeRun{Run: run, rng: rand.New(rand.NewPCG(seed, 1))}
	for range 3000 {
		f.words = append(f.words, f.word())
	}
	return f
}

// word makes a word up.
func (f *fakeRun) word() string {
	const vowels, others = "aaeeeiioou", "bcdfghklmnnprrssttvwz"
	var b strings.Builder
	for range 1 + f.rng.IntN(4) {
		b.WriteByte(others[f.rng.IntN(len(others))])
		b.WriteByte(vowels[f.rng.IntN(len(vowels))])
		if f.rng.IntN(3) == 0 {
			b.WriteByte(others[f.rng.IntN(len(others))])
		}
	}
	return b.String()
}

// Prose returns a text of n bytes in which, as in a language, few words are
// frequent and many are rare.
func (f *fakeRun) Prose(n int) string {
	var b strings.Builder
	for b.Len() < n {
		rank := math.Pow(float64(len(f.words)), f.rng.Float64()) - 1
		b.WriteString(f.words[int(rank)])
		b.WriteString([]string{" ", " ", " ", " ", " ", " ", ", ", ". ", "; ", "\n"}[f.rng.IntN(10)])
	}
	return b.String()[:n]
}

// answerKey returns a key that differs with each n.
func answerKey(n int) record.Key { return record.Key(sha256.Sum256(fmt.Append(nil, n))) }

// Task returns the n-th task.
func (f *fakeRun) Task(n int) *task.Task {
	title := fmt.Sprintf("Check part %d of the claim", n)
	return &task.Task{ID: task.NewID(title), Spec: task.Spec{Title: title, Assignee: "analyst", Description: f.Prose(250), Source: provenance.Source{Origin: provenance.Position{File: "team.yaml", Line: 10 + n}}}}
}

// Session returns the id of the session of an attempt.
func (f *fakeRun) Session(of *task.Task) string { return f.Run + "/" + string(of.ID) + "/1" }

// Ask returns the entries before a model call with a prompt of some 1,400 bytes: two
// decisions, the prompt as a caller with this clearance sees it, and the start of the call.
func (f *fakeRun) Ask(of *task.Task, clearance label.Classification) []record.Entry {
	earlier := task.NewID("Read the claim")
	offers := []gate.Offer{
		{Source: gate.Source{Kind: handoff.Dependency, Name: string(earlier)}, Title: "Read the claim", Assignee: "intake", Status: task.Completed, Envelope: f.Envelope("intake", f.Prose(500))},
		{Source: gate.Source{Kind: handoff.Input, Name: "claim"}, Title: "claim", Envelope: f.Envelope(handoff.User, f.Prose(300))},
	}
	r, size := f.record(of, offers, clearance)
	asked := &record.CallStart{Session: f.Session(of), Task: of.ID, Agent: of.Assignee, Model: "gpt-4o-mini", Attempt: 1, Time: f.now(), Bytes: size}
	return []record.Entry{{Record: r}, {Asked: asked}}
}

// record takes offers through the gate and builds the prompt.
func (f *fakeRun) record(of *task.Task, offers []gate.Offer, clearance label.Classification) (*record.Prompt, int) {
	grants := []gate.Grant{gate.WholeOf(offers[0].Source, "team.yaml:8"), gate.WholeOf(offers[1].Source, "team.yaml:9")}
	k := must(gate.Negotiate(gate.Request{Session: f.Session(of), Caller: handoff.User, Run: f.Run, Task: of.ID, Classification: min(f.Label, label.Confidential), Grants: grants},
		&gate.Capabilities{Agent: of.Assignee, Accepts: label.Secret, Produces: label.Secret}))
	compartment := gate.Compartment{Contract: k}
	b := brief.Brief{Contract: k, Task: of, System: "You check claims, and say what is missing.", SystemOrigin: "team.yaml:3"}
	r := &record.Prompt{}
	for i := range offers {
		s := must(compartment.GateOutbound(context.Background(), &offers[i], noon))
		r.Handoffs = append(r.Handoffs, decided(k.Session, s.Decision()))
		if offers[i].Source.Kind == handoff.Input {
			b.Inputs = append(b.Inputs, s)
		} else {
			b.Dependencies = append(b.Dependencies, s)
		}
	}
	p, whole, err := prompt.Build(b)
	shown, _ := promptview.Show(must(p, err), whole, clearance, nil)
	r.Prompt = &shown
	return r, len(p.System()) + len(p.Text())
}

func decided(session string, d *gate.Decision) event.Handoff {
	return event.Handoff{
		Session:   session,
		From:      d.From,
		To:        d.To,
		Task:      d.Task,
		Source:    d.Source,
		Label:     d.Before,
		Delivered: d.After,
		Redacted:  d.Redacted,
		Time:      noon,
		Before:    event.Extent{Outputs: 1, Tokens: d.BytesBefore / 4, Bytes: d.BytesBefore},
		After:     event.Extent{Outputs: 1, Tokens: d.BytesAfter / 4, Bytes: d.BytesAfter},
		Ruling:    event.Ruling{Verdict: d.Verdict, Reason: d.Reason, Mode: handoff.Full, Rule: d.Rule, Line: d.Line},
	}
}

// Envelope returns a text in an envelope.
func (f *fakeRun) Envelope(from, text string) *envelope.Envelope {
	return must(envelope.New(envelope.Header{ID: envelope.ID(f.Run + "/" + from), Producer: from, Run: f.Run, Classification: min(f.Label, label.Confidential), CreatedAt: noon}, envelope.Text(text)))
}

// Answer returns the call of an agent that answered.
func (f *fakeRun) Answer(of *task.Task, text string, key record.Key) *record.AgentCall {
	h := envelope.Header{ID: envelope.ID(f.Session(of)), Producer: of.Assignee, Task: of.ID, Run: f.Run, Classification: f.Label, CreatedAt: f.now(), DerivedFrom: []envelope.ID{"a", "b"}}
	e := must(envelope.New(h, envelope.Text(text)))
	return &record.AgentCall{
		Start:   noon,
		End:     f.now(),
		Context: event.Context{Prompts: 1, Sent: 1400, Shared: 9000},
		Result:  new(stored(e, text)),
		CallID:  record.CallID{Session: f.Session(of), Task: of.ID, Title: of.Title, Agent: of.Assignee, Model: "gpt-4o-mini", Attempt: 1},
		Keys:    record.Keys{Key: key, Core: key, Reuse: key, Reusable: true},
		Spent:   record.Spent{Input: 350, Output: 250, Turns: 1},
	}
}

// Rejected returns the entry of an answer that its agent must correct.
func (f *fakeRun) Rejected(of *task.Task, text string, key record.Key) *record.AgentCall {
	x := f.Answer(of, text, key)
	x.Part, x.Code, x.Error, x.Reusable, x.Reuse = "/rejected", "OUTPUT_SCHEMA_INVALID", "it is not a number: "+text, false, record.Key{}
	return x
}

// stored is the stored form of an envelope of a text.
func stored(e *envelope.Envelope, text string) envelope.Record {
	return envelope.Record{Header: e.Header(), Text: text, Digest: e.Digest()}
}

// Events returns events about a task.
func (f *fakeRun) Events(of *task.Task, types ...event.Type) (list []record.Entry) {
	for _, typ := range types {
		f.seq++
		e := &event.Event{Seq: f.seq, Type: typ, Time: f.now(), Run: f.Run, Task: of.ID, Title: of.Title, Agent: of.Assignee, Attempt: 1}
		if typ == event.TaskComplete {
			e.Status, e.Duration, e.Input, e.Output, e.Bytes = task.Completed, 1500*time.Millisecond, 350, 250, 1000
		}
		list = append(list, record.Entry{Event: e})
	}
	return list
}

// Complete returns the entries of the n-th task, whose answer is prose of so many bytes:
// those before the model call, and those after it.
func (f *fakeRun) Complete(n, bytes int) (before, after []record.Entry) {
	of := f.Task(n)
	before = append(f.Events(of, event.TaskReady, event.TaskStart, event.AgentStart), f.Ask(of, label.Confidential)...)
	after = append([]record.Entry{{Exchange: f.Answer(of, f.Prose(bytes), answerKey(n))}}, f.Events(of, event.AgentComplete, event.TaskComplete)...)
	return before, after
}

// now is a moment later with each event.
func (f *fakeRun) now() time.Time { return noon.Add(time.Duration(f.seq) * time.Millisecond) }

// must panics if a value that a fakeRun makes up is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
