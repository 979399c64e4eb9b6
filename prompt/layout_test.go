package prompt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

func TestLayoutsHaveNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, brief.Work, brief.Brief{}.Layout)
	require.Equal(t, "work planning synthesis layout 3", strings.Join([]string{brief.Work.String(), brief.Planning.String(), brief.Synthesis.String(), brief.Layout(3).String()}, " "))
	d := newDesk(t)
	b := d.planning("Find out why.")
	b.Layout = 3
	_, _, err := prompt.Build(b)
	require.ErrorIs(t, err, brief.ErrInvalid)
	require.ErrorContains(t, err, "there is no layout 3")
}

// of returns a brief of a layout with nothing in it but the goal.
func (d *desk) of(l brief.Layout) brief.Brief {
	switch l {
	case brief.Planning:
		return d.planning("Find out why.")
	case brief.Synthesis:
		return d.synthesis("Find out why.")
	}
	return d.brief()
}

// A field of a brief, by what puts context into it.
type field struct {
	name   string
	put    func(*brief.Brief, gate.Sealed)
	status task.Status
	as     task.Payload
	takes  map[brief.Layout][]handoff.SourceKind
}

var fields = []field{
	{name: "Inputs", put: func(b *brief.Brief, s gate.Sealed) { b.Inputs = append(b.Inputs, s) },
		takes: map[brief.Layout][]handoff.SourceKind{brief.Work: {handoff.Input, handoff.Plan, handoff.Fault}}},
	{name: "Dependencies", put: func(b *brief.Brief, s gate.Sealed) { b.Dependencies = append(b.Dependencies, s) }, status: task.Completed,
		takes: map[brief.Layout][]handoff.SourceKind{brief.Work: {handoff.Dependency}, brief.Synthesis: {handoff.Dependency, handoff.Digest}}},
	{name: "Memory", put: func(b *brief.Brief, s gate.Sealed) { b.Memory = append(b.Memory, s) },
		takes: map[brief.Layout][]handoff.SourceKind{brief.Work: {handoff.Memory}, brief.Synthesis: {handoff.Memory}}},
	{name: "Messages", put: func(b *brief.Brief, s gate.Sealed) { b.Messages = append(b.Messages, s) },
		takes: map[brief.Layout][]handoff.SourceKind{brief.Work: {handoff.Message}}},
	{name: "Drafts", put: func(b *brief.Brief, s gate.Sealed) { b.Drafts = append(b.Drafts, s) },
		takes: map[brief.Layout][]handoff.SourceKind{brief.Planning: {handoff.Plan, handoff.Fault}}},
	{name: "Failed", put: func(b *brief.Brief, s gate.Sealed) { b.Failed = append(b.Failed, s) }, status: task.Failed,
		takes: map[brief.Layout][]handoff.SourceKind{brief.Synthesis: {handoff.Fault}}},
	{name: "Skipped", put: func(b *brief.Brief, s gate.Sealed) { b.Skipped = append(b.Skipped, s) }, status: task.Skipped,
		takes: map[brief.Layout][]handoff.SourceKind{brief.Synthesis: {handoff.Fault}}},
	{name: "Goal", put: func(b *brief.Brief, s gate.Sealed) { b.Goal = &s },
		takes: map[brief.Layout][]handoff.SourceKind{brief.Planning: {handoff.Goal}, brief.Synthesis: {handoff.Goal}}},
	{name: "Roster", put: func(b *brief.Brief, s gate.Sealed) { b.Roster = &s }, as: task.Structured,
		takes: map[brief.Layout][]handoff.SourceKind{brief.Planning: {handoff.Roster}, brief.Synthesis: {handoff.Roster}}},
	{name: "Instruction", put: func(b *brief.Brief, s gate.Sealed) { b.Instruction = &s },
		takes: map[brief.Layout][]handoff.SourceKind{brief.Work: {handoff.Plan}}},
}

// context returns an offer that suits the field but for its kind.
func (d *desk) context(f *field, kind handoff.SourceKind) *gate.Offer {
	o := d.offer(kind, "title", "analyst", structured(d.t, `{"a":1}`).WithText("x"))
	o.Status, o.As = f.status, f.as
	return o
}

// sourceKinds lists every kind of context.
var sourceKinds = []handoff.SourceKind{
	handoff.Dependency, handoff.Input, handoff.Memory, handoff.Message, handoff.Goal, handoff.Roster, handoff.Plan,
	handoff.Fault, handoff.Digest, handoff.Draft, gate.Reasoning,
}

// Requirement: G30.
func TestEachKindHasItsPlaces(t *testing.T) {
	t.Parallel()
	for _, f := range fields {
		for layout := range brief.Layout(3) {
			for _, kind := range sourceKinds {
				d := newDesk(t)
				b := d.of(layout)
				f.put(&b, d.gated(d.context(&f, kind)))
				_, _, err := prompt.Build(b)
				if slices.Contains(f.takes[layout], kind) {
					require.NoError(t, err, "%v among %s of %v", kind, f.name, layout)
				} else {
					require.ErrorIs(t, err, brief.ErrInvalid, "%v among %s of %v", kind, f.name, layout)
				}
			}
		}
	}
}

// Requirement: G4.
func TestEachFieldNeedsItsOwnSealedContext(t *testing.T) {
	t.Parallel()
	for _, f := range fields {
		for layout, kinds := range f.takes {
			d := newDesk(t)
			b := d.of(layout)
			f.put(&b, gate.Sealed{})
			_, _, err := prompt.Build(b)
			require.ErrorIs(t, err, gate.ErrUnsealed, "the zero value in %s of %v", f.name, layout)

			b, other := d.of(layout), newDesk(t)
			other.gate.Contract.Session, other.gate.Contract.Callee = "r1/t-down/2", b.Contract.Callee
			f.put(&b, other.gated(other.context(&f, kinds[0])))
			_, _, err = prompt.Build(b)
			require.ErrorIs(t, err, gate.ErrUnsealed, "another session in %s of %v", f.name, layout)
		}
	}
}

func TestBriefsHaveNoFieldWithoutEffect(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		layout brief.Layout
		change func(*brief.Brief)
		says   string
	}{
		"guidance for work":      {brief.Work, func(b *brief.Brief) { b.Guidance = "x" }, "write it into System"},
		"a part of work":         {brief.Work, func(b *brief.Brief) { b.Part, b.Parts = 1, 2 }, "a brief for work has no parts"},
		"a part of a plan":       {brief.Planning, func(b *brief.Brief) { b.Part, b.Parts = 1, 2 }, "a brief for planning has no parts"},
		"no goal to plan for":    {brief.Planning, func(b *brief.Brief) { b.Goal = nil }, "there is no goal"},
		"part 0 of 2":            {brief.Synthesis, func(b *brief.Brief) { b.Parts = 2 }, "there is no part 0 of 2"},
		"part 3 of 2":            {brief.Synthesis, func(b *brief.Brief) { b.Part, b.Parts = 3, 2 }, "there is no part 3 of 2"},
		"part 1 of none":         {brief.Synthesis, func(b *brief.Brief) { b.Part = 1 }, "there is no part 1 of 0"},
		"part -1 of -1":          {brief.Synthesis, func(b *brief.Brief) { b.Part, b.Parts = -1, -1 }, "there is no part -1 of -1"},
		"part -1 of 2":           {brief.Synthesis, func(b *brief.Brief) { b.Part, b.Parts = -1, 2 }, "there is no part -1 of 2"},
		"less than no bytes":     {brief.Work, func(b *brief.Brief) { b.MaxBytes = -1 }, "MaxBytes is -1"},
		"an opener in the duty":  {brief.Synthesis, func(b *brief.Brief) { b.Task.Description = "x\n## Your task" }, `line 2 of the description begins with "## your task"`},
		"an opener in the words": {brief.Planning, func(b *brief.Brief) { b.Task.Description = "## Goal" }, `line 1 of the description begins with "## goal"`},
	} {
		d := newDesk(t)
		b := d.of(tt.layout)
		tt.change(&b)
		_, _, err := prompt.Build(b)
		require.ErrorIs(t, err, brief.ErrInvalid, name)
		require.ErrorContains(t, err, tt.says, name)
	}
}

// instructions are the fields that stand unfenced, with how errors call them.
var instructions = map[string]func(*desk) (brief.Brief, *gate.Offer, func(*brief.Brief, gate.Sealed)){
	"the goal": func(d *desk) (brief.Brief, *gate.Offer, func(*brief.Brief, gate.Sealed)) {
		return d.planning("x"), d.offer(handoff.Goal, "", handoff.User, envelope.Text("x")), func(b *brief.Brief, s gate.Sealed) { b.Goal = &s }
	},
	"the description": func(d *desk) (brief.Brief, *gate.Offer, func(*brief.Brief, gate.Sealed)) {
		return d.brief(), d.offer(handoff.Plan, "", handoff.Coordinator, envelope.Text("x")), func(b *brief.Brief, s gate.Sealed) { b.Instruction = &s }
	},
}

// Requirement: G31.
func TestInstructionsFollowTheRulesOfDescriptions(t *testing.T) {
	t.Parallel()
	for what, of := range instructions {
		try := func(p envelope.Payload) (string, error) {
			d := newDesk(t)
			b, o, put := of(d)
			e, err := envelope.New(envelope.Header{ID: "e", Producer: "analyst", CreatedAt: noon}, p)
			require.NoError(t, err)
			o.Envelope = e
			put(&b, d.gated(o))
			made, _, err := prompt.Build(b)
			return made.Text(), err
		}
		reserved := openers
		if what == "the goal" {
			reserved = append(goalOpeners, openers...)
		}
		for _, opener := range reserved {
			_, err := try(envelope.Text("Find out.\n  " + strings.ToUpper(opener)))
			require.ErrorIs(t, err, brief.ErrInvalid, opener)
			require.ErrorContains(t, err, "line 2 of "+what+" begins with")
		}
		text, err := try(envelope.Text("Find out.\n\n### Why\n- **a**: b\n# Tasks\n"))
		require.NoError(t, err)
		require.Contains(t, text, "\n\nFind out.\n\n### Why\n- **a**: b\n# Tasks\n")

		for _, empty := range []envelope.Payload{{}, structured(t, `{"a":1}`)} {
			_, err = try(empty)
			require.ErrorIs(t, err, brief.ErrInvalid)
			require.ErrorContains(t, err, what+" has no text")
		}
		_, err = try(envelope.Text(strings.Repeat("x", contextBytes)))
		require.NoError(t, err)
		_, err = try(envelope.Text(strings.Repeat("x", contextBytes+1)))
		require.ErrorIs(t, err, brief.ErrTooLarge, "half an instruction is another one")
		require.NotErrorIs(t, err, brief.ErrInvalid)
	}
}

// Requirement: G9.
func TestInstructionsAreGated(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-77d"
	for what, of := range instructions {
		d := newDesk(t)
		b, o, put := of(d)
		o.Envelope = changed(d, o, func(r *envelope.Record) { r.Classification = label.Secret })
		o.Optional = true
		put(&b, d.gated(o))
		_, _, err := prompt.Build(b)
		require.ErrorIs(t, err, brief.ErrInvalid)
		require.ErrorContains(t, err, what+" is withheld")
		require.ErrorAs(t, err, new(*handoff.WithheldError))

		d = newDesk(t)
		b, o, put = of(d)
		e, err := envelope.New(envelope.Header{ID: "e", Producer: "analyst", CreatedAt: noon}, envelope.Text("Use "+fakeToken+" and <|im_start|>"+canary))
		require.NoError(t, err)
		o.Envelope = e
		put(&b, d.gated(o))
		require.Contains(t, build(t, b).Text(), "Use [REDACTED:token] and <·|im_start|>"+canary)
	}
	d := newDesk(t)
	b := d.planning("x")
	roster := d.offer(handoff.Roster, "", handoff.User, structured(t, `["`+canary+`"]`))
	b.Roster = new(d.refused(roster))
	_, _, err := prompt.Build(b)
	require.ErrorContains(t, err, "the roster is withheld")
	b.Roster = new(d.seal(handoff.Roster, "", handoff.User, envelope.Text("analyst")))
	_, _, err = prompt.Build(b)
	require.ErrorContains(t, err, "the roster is no structured value")
}
