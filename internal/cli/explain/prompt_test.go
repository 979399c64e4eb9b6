package explain

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

func TestEveryKindOfContextHasAName(t *testing.T) {
	t.Parallel()
	x := &Document{Trace: &trace.Trace{}}
	tests := []struct {
		kind handoff.SourceKind
		want string
	}{
		{handoff.Dependency, "result of s from a"},
		{handoff.Input, "input s"},
		{handoff.Memory, "memory entry s"},
		{handoff.Message, "message from a"},
		{handoff.Goal, "the goal"},
		{handoff.Roster, "the roster"},
		{handoff.Plan, "plan of a, s"},
		{handoff.Fault, "fault from a, s"},
		{handoff.Digest, "digest s from a"},
		{handoff.Draft, "its previous answer"},
		{handoff.ToolResult, "toolResult s from a"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, x.named(gate.Source{Kind: tt.kind, Name: "s"}, "a"))
	}
	require.Equal(t, "what it said in turn 1", x.named(gate.Source{Kind: handoff.Draft, Name: "s/turn/2"}, "a"))
	require.Equal(t, "fault from a, s", x.named(gate.Source{Kind: handoff.Fault, Name: "s/turn/3"}, "a"))
}

// explain says what was narrowed, translated, cut or lowered.
func TestExplainShowsPolicyEffects(t *testing.T) {
	t.Parallel()
	d := &gate.Decision{
		Verdict: gate.Passed, Mode: handoff.Scoped, Rule: "intake-to-fraud", Line: "team.yaml:30", Source: gate.Source{Kind: handoff.Input, Name: "claim"}, From: "user", Translated: true, Entries: []gate.Entry{{Use: gate.EntryLowered, Name: "score"}}, Before: label.Confidential, After: label.Internal,
		Narrowing:  &gate.Narrowing{Narrowed: true, Kept: []task.Path{"/facts/*", "/sum"}, Dropped: []task.Path{"/notes"}, TextDropped: true},
		Redactions: gate.Redactions{Redacted: redact.Counts{"card": 1, "email": 2}, Revealed: redact.Counts{"iban": 1}},
		Sizes:      gate.Sizes{CutFrom: 80_000},
	}
	x := &Document{Trace: &trace.Trace{}}
	require.Equal(t, "input claim, internal (was confidential), intake-to-fraud (team.yaml:30), redacted 3: card email, revealed iban, cut from 78.1 KiB, translated, narrowed to /facts/* /sum, lowered by score", x.describeDecision(d))
	withheldDecision := &gate.Decision{Rule: "clearance", Reason: gate.ReasonClearance, Line: "team.yaml:31", Detail: "too high\n\x1b[2J", Source: gate.Source{Kind: handoff.Dependency, Name: "t"}, From: "intake"}
	p := x.prompt(&trace.Prompt{Agent: "fraud", Title: "Score", Shown: promptview.Shown{Receipt: &prompt.Receipt{Sources: []prompt.Source{{Decision: d}, {Decision: withheldDecision}}}}})
	require.Len(t, p.Withheld, 2)
	var out strings.Builder
	p.write(&out)
	require.Contains(t, out.String(), "  withheld: of input claim: /notes, its text, by intake-to-fraud (team.yaml:30)\n")
	require.Contains(t, out.String(), "  withheld: result of t from intake, by clearance (team.yaml:31): too high\\n\\x1b[2J\n")
}

// A value whose parts have no recorded names is described by what was withheld.
func TestExplainDescribesNarrowedValues(t *testing.T) {
	t.Parallel()
	x := &Document{Trace: &trace.Trace{}}
	tests := []struct {
		name          string
		kept, dropped []task.Path
		text          bool
		want          string
	}{
		{"everything but two members", []task.Path{"/*", "/sum"}, []task.Path{"/customer", "/iban"}, false, "narrowed to all but /customer /iban"},
		{"some members of either kind", []task.Path{"/*", "/sum"}, []task.Path{"/*", "/iban"}, false, "narrowed to /sum and parts whose names are not recorded"},
		{"members without names only", []task.Path{"/*"}, []task.Path{"/*"}, false, "narrowed to parts whose names are not recorded"},
		{"all but a member deep down", []task.Path{"/*"}, []task.Path{"/a/*"}, false, "narrowed to parts whose names are not recorded"},
		{"all but the text", []task.Path{"/*"}, nil, true, "narrowed to all of its structured part"},
		{"all", []task.Path{"/*", "/sum"}, nil, false, "narrowed to all of its parts"},
		{"elements", []task.Path{"/facts/*/sum"}, []task.Path{"/facts/*/*"}, false, "narrowed to /facts/*/sum"},
		{"nothing", nil, nil, false, "narrowed to nothing"},
	}
	for _, tt := range tests {
		d := &gate.Decision{Rule: "r", Source: gate.Source{Kind: handoff.Input, Name: "claim"}, Narrowing: &gate.Narrowing{Narrowed: true, Kept: tt.kept, Dropped: tt.dropped, TextDropped: tt.text}}
		require.Equal(t, "input claim, internal, r, "+tt.want, x.describeDecision(d), tt.name)
	}
	require.Equal(t, "/sum and parts whose names are not recorded", pathList([]task.Path{"/*", "/sum"}))
}

// A prompt is shown with what the handshake fixed before it; records of earlier versions do not have it.
func TestExplainShowsTheContract(t *testing.T) {
	t.Parallel()
	bounds := &prompt.Bounds{Clearance: label.Secret, MaxInput: label.Confidential, MaxOutput: label.Internal}
	timed := *bounds
	timed.SessionMs = 90_000
	for want, k := range map[string]prompt.Agreement{
		"": {Summary: "Find the age", Tools: []string{"lookup"}},
		"  contract: cleared for secret, takes up to confidential, answers up to internal, no tools\n":                                                                        {Bounds: bounds},
		"  contract: cleared for secret, takes up to confidential, answers up to internal, tools lookup, mail, expires 1m30s after the call begins, about \"Find\\x1b[2J\"\n": {Summary: "Find\x1b[2J", Tools: []string{"lookup", "mail"}, Bounds: &timed},
	} {
		p := (&Document{Trace: &trace.Trace{}}).prompt(&trace.Prompt{Agent: "clerk", Title: "Find", Shown: promptview.Shown{Receipt: &prompt.Receipt{Contract: k}}})
		var out strings.Builder
		p.write(&out)
		require.Equal(t, k, p.Contract)
		require.Contains(t, out.String(), want)
		require.Equal(t, want != "", strings.Contains(out.String(), "contract"))
	}
}
