package cli

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// explained returns what explain prints about a trace of prompts. Each source of a prompt that was delivered has one of
// its words.
func explained(t *testing.T, receipts ...prompt.Receipt) string {
	t.Helper()
	var text strings.Builder
	w := trace.NewWriter(&text, trace.Options{Run: "r"})
	for i := range receipts {
		r := &receipts[i]
		r.Run, r.Session, r.Task = "r", "r/t/1", "t"
		shown := &promptview.Shown{Receipt: r}
		for k := range r.Sources {
			if d := r.Sources[k].Decision; d.Verdict == gate.Passed {
				shown.Text = append(shown.Text, promptview.Piece{Range: prompt.Range{Start: int32(len(shown.Text)), End: int32(len(shown.Text) + 1), Source: int32(k), Part: brief.PartPayload}, Words: "w"})
			}
		}
		require.NoError(t, w.Record(t.Context(), record.Prompt{Prompt: shown}))
	}
	status, stdout, stderr := explainHere(t, text.String(), "-")
	require.Equal(t, exit.StatusOK, status, stderr)
	return stdout
}

func TestEveryKindOfContextHasAName(t *testing.T) {
	t.Parallel()
	x := &explain.Document{Trace: &trace.Trace{State: runstate.New()}}
	name := func(kind handoff.SourceKind, s string) string {
		return x.SourceName(&gate.Decision{Source: gate.Source{Kind: kind, Name: s}, From: "a"})
	}
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
		require.Equal(t, tt.want, name(tt.kind, "s"))
	}
	require.Equal(t, "what it said in turn 1", name(handoff.Draft, "s/turn/2"))
	require.Equal(t, "fault from a, s", name(handoff.Fault, "s/turn/3"))
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
	withheldDecision := &gate.Decision{Rule: "clearance", Reason: gate.ReasonClearance, Line: "team.yaml:31", Detail: "too high\n\x1b[2J", Source: gate.Source{Kind: handoff.Dependency, Name: "t"}, From: "intake"}
	text := explained(t, prompt.Receipt{Agent: "fraud", Sources: []prompt.Source{{Decision: d}, {Decision: withheldDecision}}})
	require.Contains(t, text, "input claim, internal (was confidential), intake-to-fraud (team.yaml:30), redacted 3: card email, revealed iban, cut from 78.1 KiB, translated, narrowed to /facts/* /sum, lowered by score\n")
	require.Contains(t, text, "  withheld: of input claim: /notes, its text, by intake-to-fraud (team.yaml:30)\n")
	require.Contains(t, text, "  withheld: result of t from intake, by clearance (team.yaml:31): too high\\n\\x1b[2J\n")
	require.Equal(t, 2, strings.Count(text, "withheld: "))
}

// A value whose parts have no recorded names is described by what was withheld.
func TestExplainDescribesNarrowedValues(t *testing.T) {
	t.Parallel()
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
		d := &gate.Decision{Verdict: gate.Passed, Rule: "r", After: label.Internal, Before: label.Internal, Source: gate.Source{Kind: handoff.Input, Name: "claim"}, Narrowing: &gate.Narrowing{Narrowed: true, Kept: tt.kept, Dropped: tt.dropped, TextDropped: tt.text}}
		require.Contains(t, explained(t, prompt.Receipt{Sources: []prompt.Source{{Decision: d}}}), "input claim, internal, r, "+tt.want+"\n", tt.name)
	}
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
		text := explained(t, prompt.Receipt{Contract: k})
		require.Contains(t, text, want)
		require.Equal(t, want != "", strings.Contains(text, "contract"))
	}
}
