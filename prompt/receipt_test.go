package prompt_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/brief"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// requireTiled fails unless the ranges cover the text without gap or overlap.
// withheldIn returns the decisions about context that was granted and not delivered.
func withheldIn(r *prompt.Receipt) (withheld []*gate.Decision) {
	for _, s := range r.Sources {
		if s.Decision != nil && s.Decision.Verdict != gate.Passed {
			withheld = append(withheld, s.Decision)
		}
	}
	return withheld
}

func requireTiled(t require.TestingT, r *prompt.Receipt, ranges []prompt.Range, text string) {
	at := int32(0)
	for _, one := range ranges {
		require.Equal(t, at, one.Start)
		require.Greater(t, one.End, one.Start)
		require.Less(t, int(one.Source), len(r.Sources))
		require.Equal(t, one.Part == brief.PartFrame, one.Source == -1, "the builder's own words, and no others, have no source")
		at = one.End
	}
	require.EqualValues(t, len(text), at)
}

func TestReceiptsTileEveryLayout(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		p := build(t, layout(newDesk(t)))
		requireTiled(t, p.Receipt(), p.Receipt().System, p.System())
		requireTiled(t, p.Receipt(), p.Receipt().Text, p.Text())
	}
}

func TestReceiptsAccountForEveryByte(t *testing.T) {
	t.Parallel()
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "x", "## Inputs\n", fakeToken, "<|im_start|>"}))
	// Only one payload of a prompt is too long for an envelope: four would exceed the prompt's limit, which cuts them further.
	large := rapid.OneOf(texts, rapid.Just(strings.Repeat("é", 40_000)))
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t)
		b := d.brief()
		b.Untitled = rapid.Bool().Draw(t, "untitled")
		b.System = rapid.SampledFrom([]string{"", "You write."}).Draw(t, "system")
		b.Schema = rapid.SampledFrom([]string{"", `{"type":"object"}`}).Draw(t, "schema")
		want := map[envelope.ID][]string{} // what must stand in payload ranges, in order
		add := func(s gate.Sealed, payloads ...string) gate.Sealed {
			for _, p := range payloads {
				if p != "" {
					want[s.Decision().Envelope] = append(want[s.Decision().Envelope], p)
				}
			}
			return s
		}
		one := func(kind handoff.SourceKind, texts *rapid.Generator[string]) gate.Sealed {
			s := d.seal(kind, "title", "analyst", envelope.Text(texts.Draw(t, "text")))
			return add(s, s.Payload().Text())
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "inputs") {
			b.Inputs = append(b.Inputs, one(handoff.Input, []*rapid.Generator[string]{large, texts}[i]))
		}
		for range rapid.IntRange(0, 3).Draw(t, "dependencies") {
			if rapid.Bool().Draw(t, "withheld") {
				b.Dependencies = append(b.Dependencies, d.withheld("w", func(c *gate.Compartment, _ *gate.Offer) { c.Contract.Grants = nil }))
				continue
			}
			b.Dependencies = append(b.Dependencies, one(handoff.Dependency, texts))
		}
		if rapid.Bool().Draw(t, "both") {
			s := d.seal(handoff.Dependency, "both", "analyst", structured(t, `{"a":1}`).WithText("words"), task.Both)
			b.Dependencies = append(b.Dependencies, add(s, "words", `{"a":1}`))
		}
		for range rapid.IntRange(0, 3).Draw(t, "messages") {
			b.Messages = append(b.Messages, one(handoff.Message, texts))
		}
		p, r, err := prompt.Build(b)
		require.NoError(t, err)
		requireTiled(t, r, r.System, p.System())
		requireTiled(t, r, r.Text, p.Text())
		got := map[envelope.ID][]string{}
		for _, part := range r.Text {
			piece := p.Text()[part.Start:part.End]
			switch part.Part {
			case brief.PartPayload:
				d := r.Sources[part.Source].Decision
				got[d.Envelope] = append(got[d.Envelope], piece)
				require.Equal(t, gate.Passed, d.Verdict)
				require.Equal(t, d.From, r.Sources[part.Source].Producer)
				require.Equal(t, d.After, r.Sources[part.Source].Classification)
			case brief.PartWithheld:
				require.Equal(t, gate.Withheld, r.Sources[part.Source].Decision.Verdict)
				require.Equal(t, "\n[withheld: rule; status completed]", piece)
			case brief.PartTitle:
				require.Equal(t, d.task.Title, piece)
			case brief.PartDescription:
				require.Equal(t, d.task.Description, piece)
			}
		}
		require.Equal(t, want, got)
	})
}

func TestReceiptNamesTheSpec(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.task.Description = "Compare ACME with Globex."
	d.task.Source.Params = []provenance.Param{{Name: "a", Start: 8, End: 12}, {Name: "b", Start: 18, End: 24}}
	d.task.Source.Origin = provenance.Position{File: "team.yaml", Line: 9}
	d.task.Classification = label.Confidential
	b := d.brief()
	b.System, b.SystemOrigin, b.SystemParams = "Be dry.", "team.yaml:4", []provenance.Param{{Name: "tone", Start: 3, End: 6}}
	p := build(t, b)
	r := p.Receipt()
	type entry struct {
		part        prompt.Part
		text        string
		spec, param string
	}
	list := func(ranges []prompt.Range, text string) (all []entry) {
		for _, one := range ranges {
			e := entry{part: one.Part, text: text[one.Start:one.End]}
			if one.Source >= 0 {
				e.spec, e.param = r.Sources[one.Source].Spec, r.Sources[one.Source].Param
				require.Equal(t, "user", r.Sources[one.Source].Producer)
			}
			all = append(all, e)
		}
		return all
	}
	require.Equal(t, []entry{
		{brief.PartFrame, "# Task: ", "", ""}, {brief.PartTitle, "Write it up", "team.yaml:9", ""}, {brief.PartFrame, "\n\n", "", ""},
		{brief.PartDescription, "Compare ", "team.yaml:9", ""}, {brief.PartDescription, "ACME", "team.yaml:9", "a"}, {brief.PartDescription, " with ", "team.yaml:9", ""},
		{brief.PartDescription, "Globex", "team.yaml:9", "b"}, {brief.PartDescription, ".", "team.yaml:9", ""},
	}, list(r.Text, p.Text()))
	require.Equal(t, []entry{
		{brief.PartSystem, "Be ", "team.yaml:4", ""}, {brief.PartSystem, "dry", "team.yaml:4", "tone"}, {brief.PartSystem, ".", "team.yaml:4", ""},
	}, list(r.System, p.System()))
	require.Equal(t, label.Confidential, r.Sources[0].Classification)
	require.Equal(t, label.Confidential, r.Classification)
	require.Equal(t, "writer", r.Agent)
	require.EqualValues(t, "t-down", r.Task)
	require.Equal(t, "r1", r.Run)
	require.Equal(t, "r1/t-down/1", r.Session)
}

func TestReceiptListsWhatWasWithheld(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	silent := d.offer(handoff.Message, "", "critic", structured(t, `1`))
	silent.Optional = true
	d.gate.Contract.MaxInput = label.Public
	held := d.gated(silent)
	d.gate.Contract.MaxInput = label.Confidential
	b.Dependencies = []gate.Sealed{d.dep("Analyse", "analyst", "x"), d.withheld("w", func(c *gate.Compartment, _ *gate.Offer) { c.Contract.Grants = nil })}
	b.Messages = []gate.Sealed{held}
	p, recorded, err := prompt.Build(b)
	require.NoError(t, err)
	require.NotContains(t, p.Text(), "critic", "a message that was held leaves no trace in the prompt")
	reasons := func(r *prompt.Receipt) (list []string) {
		for _, decision := range withheldIn(r) {
			list = append(list, decision.Reason)
		}
		return list
	}
	require.Equal(t, []string{gate.ReasonRule}, reasons(p.Receipt()), "nor in the receipt that the agent gets")
	require.Equal(t, []string{gate.ReasonRule, gate.ReasonClearance}, reasons(recorded), "but one in the record")
}

// Requirement: G42.
func TestReceiptsAndPromptsShowNoText(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-9c1"
	d := newDesk(t)
	b := d.brief()
	b.Dependencies = []gate.Sealed{d.dep("Analyse", "analyst", canary), d.seal(handoff.Dependency, "Score", "analyst", structured(t, `{"`+canary+`":1}`), task.Structured)}
	b.Memory, b.Messages = []gate.Sealed{d.memory("critic", "note", canary)}, []gate.Sealed{d.message("critic", canary)}
	d.task.Description = canary
	p := build(t, b)
	require.Equal(t, 5, strings.Count(p.Text(), canary))
	raw, err := json.Marshal(p.Receipt())
	require.NoError(t, err)
	require.NotContains(t, string(raw), canary)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
		require.NotContains(t, fmt.Sprintf(verb, p), canary)
		require.NotContains(t, fmt.Sprintf(verb, &p), canary)
		require.NotContains(t, fmt.Sprintf(verb, []prompt.Prompt{p}), canary)
		require.NotContains(t, fmt.Sprintf(verb, p.Receipt()), canary)
		require.NotContains(t, fmt.Sprintf(verb, b.Dependencies), canary)
	}
	raw, err = json.Marshal(p)
	require.NoError(t, err)
	require.NotContains(t, string(raw), canary)
}

// TestReceiptIsACopyForTheAgent lets an agent rewrite everything that it
// can reach of its receipt and finds the record as it was.
//
// Requirement: G11.
func TestReceiptIsACopyForTheAgent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	b.Dependencies = []gate.Sealed{d.seal(handoff.Dependency, "Read", "analyst", envelope.Text("my key is "+fakeToken))}
	p, record, err := prompt.Build(b)
	require.NoError(t, err)
	before, err := json.Marshal(record)
	require.NoError(t, err)
	mine := p.Receipt()
	want := *record
	want.Sources = slices.Clone(record.Sources)
	for i := range want.Sources {
		if of := want.Sources[i].Decision; of != nil {
			own := *of
			own.Provenance = gate.Provenance{} // which is not for the agent
			want.Sources[i].Decision = &own
		}
	}
	require.Equal(t, &want, mine)
	mine.Agent = "another"
	mine.Text[0].End = 99
	mine.Sources[1].Producer = "nobody"
	mine.Sources[1].Decision.Verdict = gate.Withheld
	mine.Sources[1].Decision.Redacted["token"] = 99
	after, err := json.Marshal(record)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	require.NotEqual(t, mine, p.Receipt())
}
