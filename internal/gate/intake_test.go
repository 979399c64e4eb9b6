package gate_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// What an agent says of itself narrows, whatever the policy says: with it, no pair gets more than
// without it.
func TestIntakeOnlyNarrows(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "tool:t"}
	paths := rapid.SliceOfN(rapid.SampledFrom([]task.Path{"/a", "/b", "/a/c", "/list/*/d", "/e/**"}), 1, 3)
	rapid.Check(t, func(t *rapid.T) {
		translation := func(what string) *handoff.Translation {
			switch rapid.IntRange(0, 3).Draw(t, what) {
			case 0:
				return &handoff.Translation{Fields: paths.Draw(t, "fields")}
			case 1:
				return &handoff.Translation{Filter: paths.Draw(t, "filter")}
			case 2:
				return &handoff.Translation{MaxTokens: rapid.IntRange(1, 9).Draw(t, "tokens"), ByModel: rapid.Bool().Draw(t, "by model")}
			}
			return nil
		}
		p := &handoff.Policy{Default: rapid.SampledFrom([]handoff.Mode{"", handoff.Full, handoff.Scoped, handoff.Minimal}).Draw(t, "default")}
		for _, from := range append(names, handoff.Anyone) {
			for _, to := range append(names[:2:2], handoff.Anyone) {
				if rapid.Bool().Draw(t, "rule") || from == handoff.Anyone && to == handoff.Anyone {
					continue
				}
				r := handoff.PairRule{From: from, To: to, Mode: rapid.SampledFrom([]handoff.Mode{"", handoff.Full, handoff.Scoped, handoff.Minimal}).Draw(t, "mode")}
				if r.Mode == handoff.Scoped {
					r.Allow = paths.Draw(t, "allow")
				}
				if r.Mode != handoff.Minimal {
					r.Translate = translation("translate")
				}
				if rapid.Bool().Draw(t, "blocks") {
					r.Block = paths.Draw(t, "block")
				}
				p.Rules = append(p.Rules, r)
			}
		}
		own := gate.Party{Name: "b", Translate: translation("of the agent")}
		if rapid.Bool().Draw(t, "allows") {
			own.Allow = paths.Draw(t, "allow")
		} else {
			own.Default = rapid.SampledFrom([]handoff.Mode{"", handoff.Full, handoff.Scoped}).Draw(t, "default")
		}
		if rapid.Bool().Draw(t, "blocks") {
			own.Block = paths.Draw(t, "block")
		}
		without, err := gate.Compile(p, []gate.Party{{Name: "a"}, {Name: "b"}, {Name: "tool:t"}})
		if err != nil {
			t.Skip(err)
		}
		with, err := gate.Compile(p, []gate.Party{{Name: "a"}, own, {Name: "tool:t"}})
		if err != nil {
			t.Skip(err)
		}
		if wider := with.Widens(without, names, nil); len(wider) > 0 {
			t.Fatalf("%v", wider)
		}
	})
}

// What an agent says of itself is checked as a rule is.
func TestIntakeIsChecked(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		give    gate.Party
		pointer string
		message string
	}{
		{"list with mode full", gate.Party{Default: handoff.Full, Allow: []task.Path{"/a"}}, "/policy/allow", "a list of allowed fields has no effect with handoff: full"},
		{"list with mode minimal", gate.Party{Default: handoff.Minimal, Allow: []task.Path{"/a"}}, "/policy/allow", "a list of allowed fields has no effect with handoff: minimal"},
		{"empty list", gate.Party{Allow: []task.Path{}}, "/policy/allow", "an empty list of allowed fields grants nothing"},
		{"path that is none", gate.Party{Allow: []task.Path{"a"}}, "/policy/allow/0", ""},
		{"numeric segment", gate.Party{Allow: []task.Path{"/a/0"}}, "/policy/allow/0", ""},
		{"all blocked", gate.Party{Allow: []task.Path{"/a"}, Block: []task.Path{"/a"}}, "/policy/block", "all fields that it allows it also blocks"},
		{"empty translation", gate.Party{Translate: &handoff.Translation{}}, "/policy/translate", "it says nothing"},
		{"system prompt", gate.Party{Translate: &handoff.Translation{Recast: "system"}}, "/policy/translate/recast", "only a rule for one pair puts context into a system prompt"},
		{"translation of nothing", gate.Party{Default: handoff.Minimal, Translate: &handoff.Translation{MaxTokens: 1}}, "/policy/translate", "with mode: minimal there is nothing to translate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.give.Name = "b"
			_, err := gate.Compile(&handoff.Policy{}, []gate.Party{{Name: "a"}, tt.give})
			found, ok := errors.AsType[task.Problems](err)
			require.True(t, ok)
			require.Equal(t, tt.pointer, found[0].Pointer)
			require.Equal(t, `agent "b"`, found[0].Subject)
			if tt.message != "" {
				require.Equal(t, tt.message, found[0].Message)
			}
		})
	}
}
