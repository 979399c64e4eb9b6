package journaltest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
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

// Noon is when the stories of a [Teller] begin.
var Noon = time.Date(2026, 3, 14, 12, 0, 0, 123456789, time.UTC)

// A Teller makes up what a run tells: prompts that passed the gate, and varied
// prose. Equal seeds tell equal stories. One goroutine uses it at a time.
type Teller struct {
	Run   string
	Label label.Classification // of all texts; in prompts confidential at most
	rng   *rand.Rand
	words []string
	seq   int
}

// NewTeller returns a teller of a run.
func NewTeller(run string, seed uint64) *Teller {
	t := &Teller{Run: run, rng: rand.New(rand.NewPCG(seed, 1))}
	for range 3000 {
		t.words = append(t.words, t.word())
	}
	return t
}

// word makes a word up.
func (t *Teller) word() string {
	const vowels, others = "aaeeeiioou", "bcdfghklmnnprrssttvwz"
	var b strings.Builder
	for range 1 + t.rng.IntN(4) {
		b.WriteByte(others[t.rng.IntN(len(others))])
		b.WriteByte(vowels[t.rng.IntN(len(vowels))])
		if t.rng.IntN(3) == 0 {
			b.WriteByte(others[t.rng.IntN(len(others))])
		}
	}
	return b.String()
}

// Prose returns a text of n bytes in which, as in a language, few words are
// frequent and many are rare.
func (t *Teller) Prose(n int) string {
	var b strings.Builder
	for b.Len() < n {
		rank := math.Pow(float64(len(t.words)), t.rng.Float64()) - 1
		b.WriteString(t.words[int(rank)])
		b.WriteString([]string{" ", " ", " ", " ", " ", " ", ", ", ". ", "; ", "\n"}[t.rng.IntN(10)])
	}
	return b.String()[:n]
}

// Key returns a key that differs with each n.
func Key(n int) record.Key { return record.Key(sha256.Sum256(fmt.Append(nil, n))) }

// Task returns the n-th task of the story.
func (t *Teller) Task(n int) *task.Task {
	title := fmt.Sprintf("Check part %d of the claim", n)
	return &task.Task{ID: task.NewID(title), Spec: task.Spec{Title: title, Assignee: "analyst", Description: t.Prose(250), Origin: provenance.Position{File: "team.yaml", Line: 10 + n}}}
}

// Session returns the id of the session of an attempt.
func (t *Teller) Session(of *task.Task) string { return t.Run + "/" + string(of.ID) + "/1" }

// Ask returns what is told before a prompt of some 1,400 bytes is sent: two
// decisions, the prompt as a caller with this clearance sees it, and that an
// agent is given it.
func (t *Teller) Ask(of *task.Task, clearance label.Classification) []record.Entry {
	earlier := task.NewID("Read the claim")
	offers := []gate.Offer{
		{Source: handoff.Source{Kind: handoff.Dependency, Name: string(earlier)}, Title: "Read the claim", Assignee: "intake", Status: task.Completed, Envelope: t.Envelope("intake", t.Prose(500))},
		{Source: handoff.Source{Kind: handoff.Input, Name: "claim"}, Title: "claim", Envelope: t.Envelope(handoff.User, t.Prose(300))},
	}
	r, size := t.record(of, offers, clearance)
	asked := &record.CallStart{Session: t.Session(of), Task: of.ID, Agent: of.Assignee, Model: "gpt-4o-mini", Attempt: 1, Time: t.now(), Bytes: size}
	return []record.Entry{{Record: r}, {Asked: asked}}
}

// record takes offers through the gate and builds the prompt.
func (t *Teller) record(of *task.Task, offers []gate.Offer, clearance label.Classification) (*record.Prompt, int) {
	grants := []gate.Grant{gate.WholeOf(offers[0].Source, "team.yaml:8"), gate.WholeOf(offers[1].Source, "team.yaml:9")}
	k := must(gate.Negotiate(gate.Request{Session: t.Session(of), Caller: handoff.User, Run: t.Run, Task: of.ID, Classification: min(t.Label, label.Confidential), Grants: grants},
		&gate.Capabilities{Agent: of.Assignee, Accepts: label.Secret, Produces: label.Secret}))
	compartment := gate.Compartment{Contract: k}
	b := brief.Brief{Contract: k, Task: of, System: "You check claims, and say what is missing.", SystemOrigin: "team.yaml:3"}
	r := &record.Prompt{}
	for i := range offers {
		s := must(compartment.GateOutbound(context.Background(), &offers[i], Noon))
		r.Handoffs = append(r.Handoffs, decided(k.Session, s.Decision()))
		if offers[i].Source.Kind == handoff.Input {
			b.Inputs = append(b.Inputs, s)
		} else {
			b.Dependencies = append(b.Dependencies, s)
		}
	}
	p, whole, err := prompt.Build(b)
	shown := promptview.Show(must(p, err), whole, clearance, nil)
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
		Time:      Noon,
		Before:    event.Extent{Outputs: 1, Tokens: d.BytesBefore / 4, Bytes: d.BytesBefore},
		After:     event.Extent{Outputs: 1, Tokens: d.BytesAfter / 4, Bytes: d.BytesAfter},
		Ruling:    event.Ruling{Verdict: d.Verdict, Reason: d.Reason, Mode: handoff.Full, Rule: d.Rule, Line: d.Line},
	}
}

// Envelope returns a text in an envelope.
func (t *Teller) Envelope(from, text string) *envelope.Envelope {
	return must(envelope.New(envelope.Header{ID: envelope.ID(t.Run + "/" + from), Producer: from, Run: t.Run, Classification: min(t.Label, label.Confidential), CreatedAt: Noon}, envelope.Text(text)))
}

// Answer returns what is told when an agent has answered.
func (t *Teller) Answer(of *task.Task, text string, key record.Key) *record.AgentCall {
	h := envelope.Header{ID: envelope.ID(t.Session(of)), Producer: of.Assignee, Task: of.ID, Run: t.Run, Classification: t.Label, CreatedAt: t.now(), DerivedFrom: []envelope.ID{"a", "b"}}
	e := must(envelope.New(h, envelope.Text(text)))
	return &record.AgentCall{
		Start:   Noon,
		End:     t.now(),
		Context: event.Context{Prompts: 1, Sent: 1400, Shared: 9000},
		Result:  new(stored(e, text)),
		CallID:  record.CallID{Session: t.Session(of), Task: of.ID, Title: of.Title, Agent: of.Assignee, Model: "gpt-4o-mini", Attempt: 1},
		Keys:    record.Keys{Key: key, Core: key, Reuse: key, Reusable: true},
		Spent:   record.Spent{Input: 350, Output: 250, Turns: 1},
	}
}

// Rejected returns the entry of an answer that its agent must correct.
func (t *Teller) Rejected(of *task.Task, text string, key record.Key) *record.AgentCall {
	x := t.Answer(of, text, key)
	x.Part, x.Code, x.Error, x.Reusable, x.Reuse = "/rejected", "OUTPUT_SCHEMA_INVALID", "it is not a number: "+text, false, record.Key{}
	return x
}

// stored is the stored form of an envelope of a text.
func stored(e *envelope.Envelope, text string) envelope.Record {
	return envelope.Record{Header: e.Header(), Text: text, Digest: e.Digest()}
}

// Events returns events about a task.
func (t *Teller) Events(of *task.Task, types ...event.Type) (list []record.Entry) {
	for _, typ := range types {
		t.seq++
		e := &event.Event{Seq: t.seq, Type: typ, Time: t.now(), Run: t.Run, Task: of.ID, Title: of.Title, Agent: of.Assignee, Attempt: 1}
		if typ == event.TaskComplete {
			e.Status, e.Duration, e.Input, e.Output, e.Bytes = task.Completed, 1500*time.Millisecond, 350, 250, 1000
		}
		list = append(list, record.Entry{Event: e})
	}
	return list
}

// Complete returns all that is told of the n-th task, which is asked and
// answers with prose of so many bytes: what comes before the call, and what
// comes after it.
func (t *Teller) Complete(n, bytes int) (before, after []record.Entry) {
	of := t.Task(n)
	before = append(t.Events(of, event.TaskReady, event.TaskStart, event.AgentStart), t.Ask(of, label.Confidential)...)
	after = append([]record.Entry{{Exchange: t.Answer(of, t.Prose(bytes), Key(n))}}, t.Events(of, event.AgentComplete, event.TaskComplete)...)
	return before, after
}

// now is a moment later with each event.
func (t *Teller) now() time.Time { return Noon.Add(time.Duration(t.seq) * time.Millisecond) }

// must is for what the teller gives, which is right.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
