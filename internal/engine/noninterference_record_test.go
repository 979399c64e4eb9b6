package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// What the policy keeps from the caller is in no recorded prompt of another reader
// either; what it delivers whole is.
//
// Requirement: G54.
func TestRecordedPromptsHideContextAboveTheCaller(t *testing.T) {
	t.Parallel()
	full := handoff.PairRule{To: "reader", Mode: handoff.Full}
	lowers := func(to string, path task.Path) []handoff.Declassifier {
		return []handoff.Declassifier{{Entry: handoff.Entry{Name: "lower " + to, From: "maker", To: to, Reason: "a test"}, Paths: []task.Path{path}, UnsafeText: true, LowerTo: label.Internal}}
	}
	tests := []struct {
		name  string
		rule  handoff.PairRule
		lower []handoff.Declassifier
		shown bool
	}{
		{"no rule for the caller", full, nil, true},
		{"minimal", handoff.PairRule{To: handoff.User, Mode: handoff.Minimal}, nil, false},
		{"a block", handoff.PairRule{To: handoff.User, Block: []task.Path{"notes"}}, nil, false},
		{"only parts", handoff.PairRule{To: handoff.User, Allow: []task.Path{"/score"}}, nil, false},
		{"a ceiling", handoff.PairRule{To: handoff.User, Ceiling: new(label.Public)}, nil, false},
		{"lowered for the reader only", full, lowers("reader", ""), false},
		{"lowered in part for the caller", full, append(lowers("reader", ""), lowers(handoff.User, "/score")...), false},
		{"lowered in part below a label limit", handoff.PairRule{To: handoff.User, Ceiling: new(label.Internal)}, append(lowers("reader", ""), lowers(handoff.User, "/score")...), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.rule.From = "maker"
			policy := &handoff.Policy{Rules: []handoff.PairRule{tt.rule}}
			maker, o := shaped(spec("maker")), engine.RunOptions{}
			if tt.lower != nil {
				policy.Declassify = tt.lower
				maker.Classification, o.UserAccepts = label.Confidential, new(label.Internal)
			}
			if tt.lower != nil && tt.rule.Ceiling != nil { // the caller is cleared, and the rule is what limits the label
				o.UserAccepts = new(label.Confidential)
			}
			var prompts strings.Builder
			o.Recorder = func(_ context.Context, r record.Prompt) error {
				if r.Prompt != nil && r.Prompt.Receipt.Agent == "reader" {
					for _, p := range r.Prompt.Text {
						prompts.WriteString(p.Words)
					}
				}
				return nil
			}
			d := newDesk()
			tm := governed(t, policy, cleared("maker", label.Confidential, says(facts)), member("reader", d.keeps(says("done"))))
			res := run(t, tm, &o, maker, spec("reader", "maker"))
			require.NoError(t, res.Err())
			require.Contains(t, d.of("reader"), facts)
			require.Equal(t, tt.shown, strings.Contains(prompts.String(), facts), prompts.String())
			require.Equal(t, tt.shown, !strings.Contains(prompts.String(), "envelope ****"), "the fence is a digest of what is withheld")
			require.Contains(t, prompts.String(), "# Task: reader")
		})
	}
}

// That context was withheld because of its content reveals something about the
// value, as the output of its agent would. It reaches the coordinator only where
// that output does.
//
// Requirement: G54.
func TestReasonsForWithholdingKeepTheLabel(t *testing.T) {
	t.Parallel()
	minimal := func(from string) handoff.PairRule {
		return handoff.PairRule{From: from, To: handoff.Coordinator, Mode: handoff.Minimal}
	}
	play := func(made string, rules ...handoff.PairRule) string {
		d := newDesk()
		tm, err := engine.New(engine.Config{
			Agents:      []engine.Member{member("maker", says(made)), member("reader", fails(errBroken))},
			Coordinator: &engine.Coordinator{Agent: engine.AgentFunc(d.keeps(says("the answer")))},
			Policy:      &handoff.Policy{Rules: rules},
		})
		require.NoError(t, err)
		reader := spec("reader", "maker")
		reader.DependsOn[0].Need = []task.Path{"/score"}
		res := run(t, tm, &engine.RunOptions{Answer: &engine.Goal{Text: "Answer."}}, shaped(spec("maker")), reader)
		require.Equal(t, []task.Status{task.Completed, task.Failed}, statuses(res))
		return d.of(handoff.Coordinator)
	}
	const has, lacks = `{"score":7}`, `{"name":"Ada"}`
	require.Equal(t, play(has, minimal("maker"), minimal("reader")), play(lacks, minimal("maker"), minimal("reader")))
	require.Contains(t, play(lacks), `dependency from "maker" was withheld: rule`)
}

// The coordinator reads no more than the caller, even if it accepts more.
//
// Requirement: G47.
func TestCoordinatorReadsNoMoreThanTheCaller(t *testing.T) {
	t.Parallel()
	d := newDesk()
	tm, err := engine.New(engine.Config{
		Agents:      []engine.Member{cleared("maker", label.Confidential, says("a private word"))},
		Coordinator: &engine.Coordinator{Agent: engine.AgentFunc(d.keeps(says("the answer"))), Accepts: new(label.Secret)},
	})
	require.NoError(t, err)
	maker := spec("maker")
	maker.Classification = label.Confidential
	o := engine.RunOptions{UserAccepts: new(label.Internal), Answer: &engine.Goal{Text: "Answer.", Classification: label.Internal}}
	res := run(t, tm, &o, maker)
	require.NoError(t, res.Err())
	require.Equal(t, "the answer", res.Output)
	require.Contains(t, d.of(handoff.Coordinator), "[withheld: clearance")
	require.NotContains(t, d.of(handoff.Coordinator), "a private word")
}
