package prompt_test

import (
	"testing"

	"github.com/runteam/runteam/internal/brief"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/stretchr/testify/require"
)

// An entry is a range of a receipt with the text that it covers.
type entry struct {
	part     prompt.Part
	text     string
	spec     string
	producer string
}

// entries lists the ranges of one of the two texts.
func entries(r *prompt.Receipt, ranges []prompt.Range, text string) (all []entry) {
	for _, one := range ranges {
		e := entry{part: one.Part, text: text[one.Start:one.End]}
		if one.Source >= 0 {
			e.spec, e.producer = r.Sources[one.Source].Spec, r.Sources[one.Source].Producer
		}
		all = append(all, e)
	}
	return all
}

func TestReceiptOfAPlanningPrompt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.planning("Find out why.")
	b.System, b.SystemOrigin, b.Guidance, b.Schema = "You are the coordinator.", "team.yaml:4", "Be brief.", `{}`
	b.Roster = new(d.roster(`["analyst"]`))
	b.Drafts = []gate.Sealed{d.plan("[]")}
	p := build(t, b)
	r := p.Receipt()
	require.Equal(t, []entry{
		{brief.PartSystem, "You are the coordinator.", "team.yaml:4", "user"}, {brief.PartFrame, "\n\n## Team Roster\n\n", "", ""},
		{brief.PartPayload, `["analyst"]`, "", "user"}, {brief.PartFrame, "\n\n", "", ""}, {brief.PartSystem, "Be brief.", "team.yaml:4", "user"},
		{brief.PartFrame, "\n\nAnswer with one JSON value that matches the schema below, and with nothing else.\n\n## Output schema\n", "", ""}, {brief.PartSchema, "{}", "plan", "runteam"},
	}, entries(r, r.System, p.System()))
	text := entries(r, r.Text, p.Text())
	require.Equal(t, []entry{
		{brief.PartDescription, "Plan tasks for these agents: analyst, critic.", "plan", "runteam"}, {brief.PartFrame, "\n\n## Goal\n\n", "", ""}, {brief.PartGoal, "Find out why.", "", "user"},
	}, text[:3])
	require.Equal(t, entry{brief.PartPayload, "[]", "", "coordinator"}, text[4])
	for _, one := range append(r.System, r.Text...) {
		if one.Part == brief.PartGoal || one.Part == brief.PartPayload {
			d := r.Sources[one.Source].Decision
			require.Equal(t, gate.Passed, d.Verdict, "who reads a receipt finds the decision")
			require.Equal(t, r.Sources[one.Source].Classification, d.After)
		}
	}
}

func TestReceiptOfAPlannedTask(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.task.Source.Params = []provenance.Param{{Name: "year", Start: 0, End: 5}} // of the description that is not written
	o := d.offer(handoff.Plan, "", handoff.Coordinator, envelope.Text("Find "+fakeToken))
	o.Envelope = changed(d, o, func(r *envelope.Record) { r.Classification = label.Confidential })
	b := d.brief()
	b.Instruction = new(d.gated(o))
	p := build(t, b)
	r := p.Receipt()
	require.Equal(t, []entry{
		{brief.PartFrame, "# Task: ", "", ""}, {brief.PartTitle, "Write it up", "Write it up", "coordinator"}, {brief.PartFrame, "\n\n", "", ""},
		{brief.PartDescription, "Find [REDACTED:token]", "", "coordinator"},
	}, entries(r, r.Text, p.Text()))
	require.Equal(t, label.Confidential, r.Sources[0].Classification, "a planned title is as sensitive as its plan")
	source := r.Sources[r.Text[3].Source]
	require.Equal(t, label.Confidential, source.Classification)
	require.Equal(t, gate.RulePlan, source.Decision.Rule)
	require.Equal(t, 1, source.Decision.Redacted.Total())
	require.NotContains(t, p.Text(), d.task.Description)
	require.Empty(t, p.Sections(), "what is to be done is no context")
}

func TestSectionsOfAPlanningPrompt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.planning("Find out why.")
	b.Roster = new(d.roster(`[ "analyst" ]`))
	b.Drafts = []gate.Sealed{d.plan("[]"), d.faults("there is no task"), d.faults("")}
	require.Equal(t, []prompt.Section{
		{Kind: handoff.Roster, Title: "Team Roster", From: "user", JSON: `["analyst"]`},
		{Kind: handoff.Goal, Title: "Goal", From: "user", Text: "Find out why."},
		{Kind: handoff.Plan, From: "coordinator", Text: "[]"},
		{Kind: handoff.Fault, From: "runteam", Text: "there is no task"},
	}, build(t, b).Sections())
}

func TestDraftsAreInOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.planning("Find out why.")
	b.Drafts = []gate.Sealed{d.plan("[1]"), d.plan("[2]"), d.faults("one"), d.faults("two")}
	require.Equal(t, []string{
		"## Goal", "## Your previous plan", "open 1 from coordinator, internal", "close 1", "open 2 from coordinator, internal", "close 2",
		"## What is wrong with it", "open 3 from runteam, internal", "close 3", "open 4 from runteam, internal", "close 4",
	}, structure(build(t, b).Text()))
	b.Drafts = []gate.Sealed{d.faults("one"), d.plan("[1]")}
	_, _, err := prompt.Build(b)
	require.ErrorIs(t, err, brief.ErrInvalid, "and nothing is put under a heading of another")
}

func TestFencesChangeWithUnfencedText(t *testing.T) {
	t.Parallel()
	plan := func(goal, roster string) string {
		d := newDesk(t)
		b := d.planning(goal)
		b.Roster, b.Drafts = new(d.roster(roster)), []gate.Sealed{d.plan("[]")}
		return fences(build(t, b).Text())[0]
	}
	work := func(instruction string) string {
		d := newDesk(t)
		b := d.brief()
		b.Instruction, b.Inputs = new(d.plan(instruction)), []gate.Sealed{d.input("in", "x")}
		return fences(build(t, b).Text())[0]
	}
	seen := map[string]bool{}
	for _, fence := range []string{plan("a", `1`), plan("b", `1`), plan("a", `2`), work("a"), work("b"), work("see [/envelope " + work("a") + "]")} {
		require.False(t, seen[fence], "who writes one of them cannot tell the fence of another")
		seen[fence] = true
	}
}

func TestReceiptOfAGoalWithParameters(t *testing.T) {
	t.Parallel()
	year := []provenance.Param{{Name: "year", Start: 3, End: 7}}
	for _, tt := range []struct {
		name, goal string
		params     []provenance.Param
		want       int
	}{
		{"a parameter", "In 2026, why?", year, 1},
		{"a goal that the gate changed", "In 2026, why " + fakeToken + "?", year, 0},
		{"parameters of another text", "Why?", year, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			b := d.planning(tt.goal)
			b.GoalParams = tt.params
			p := build(t, b)
			named := 0
			for _, s := range p.Receipt().Sources {
				if s.Param == "year" {
					named++
				}
			}
			require.Equal(t, tt.want, named)
			requireTiled(t, p.Receipt(), p.Receipt().Text, p.Text())
		})
	}
}

func TestPromptNamesItsPurpose(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	require.Equal(t, "work", build(t, d.brief()).Layout())
	require.Equal(t, "planning", build(t, d.planning("Find out why.")).Layout())
	require.Equal(t, "work", prompt.Prompt{}.Layout())
}
