package planning_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/planning"
)

func TestManifestListsTheRosterInOrder(t *testing.T) {
	t.Parallel()
	v, err := planning.Manifest([]planning.Agent{
		{Name: "writer", Model: "m-2", Description: "Writes\n\tletters.", SystemPrompt: "not shown", Capabilities: []string{"prose", " ", "law"}, Tools: []planning.Tool{{"shell", "Runs\ncommands. " + strings.Repeat("x", 140)}, {Name: "grep"}}},
		{Name: "analyst", SystemPrompt: "\n \u200b\n  You find facts.  \nAnd this is a secret of yours."},
		{Name: "plain"},
	})
	require.NoError(t, err)
	require.Equal(t, `[{"capabilities":["prose","law"],"model":"m-2","name":"writer","roleSummary":"Writes letters.","tools":[{"description":"Runs commands. `+strings.Repeat("x", 124)+`…","name":"shell"},{"name":"grep"}]},`+
		`{"name":"analyst","roleSummary":"You find facts."},{"name":"plain"}]`, v.Canonical())

	v, err = planning.Manifest(nil)
	require.NoError(t, err)
	require.Equal(t, "[]", v.Canonical())
}

func TestManifestIsBounded(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		strings.Repeat("word ", 40):                              strings.TrimSpace(strings.Repeat("word ", 28)) + "…",
		strings.Repeat("x", 140):                                 strings.Repeat("x", 140),
		strings.Repeat("x", 141):                                 strings.Repeat("x", 139) + "…",
		strings.Repeat("日", 200):                                 strings.Repeat("日", 139) + "…",
		strings.Repeat("x", 138) + "e\u0301" + "yz":              strings.Repeat("x", 138) + "…",
		strings.Repeat("x", 137) + "👩\u200d🚀yz":                  strings.Repeat("x", 137) + "…",
		"a" + strings.Repeat("\u0301", 300):                      "a" + strings.Repeat("\u0301", 138) + "…",
		strings.Repeat("y", 130) + ", " + strings.Repeat("z", 9): strings.Repeat("y", 130) + "…",
		"a\x00b\u202ec\ufe0fd\u2800e\xfff\U000e0041g":            "abcdefg",
		"a\u2028b\u0085c\x1cd\u00a0\u3000e\r\nf":                 "a b c d e f",
	}
	for give, want := range tests {
		v, err := planning.Manifest([]planning.Agent{{Name: "a", Description: give}})
		require.NoError(t, err)
		require.Equal(t, want, entries(t, v)[0].RoleSummary, "%q", give)
	}
	many := make([]string, 30)
	for i := range many {
		many[i] = strings.Repeat("c", i+1)
	}
	v, err := planning.Manifest([]planning.Agent{{Name: "a", Capabilities: many, Tools: toolsOf(many)}})
	require.NoError(t, err)
	require.Equal(t, many[:20], entries(t, v)[0].Capabilities)
	require.Equal(t, toolsOf(many[:24]), entries(t, v)[0].Tools)
	require.Equal(t, map[string][]string{"a": many[:24]}, planning.ToolNames([]planning.Agent{{Name: "a", Tools: toolsOf(many)}}))
}

// toolsOf returns tools with these names.
func toolsOf(names []string) (list []planning.Tool) {
	for _, name := range names {
		list = append(list, planning.Tool{Name: name, Description: "about " + name})
	}
	return list
}

func TestManifestOmitsUnsafeText(t *testing.T) {
	t.Parallel()
	v, err := planning.Manifest([]planning.Agent{
		{Name: "a", Model: "[INST]", Description: "Uses " + fakeToken, Capabilities: []string{"<|im_start|>", "sql"}, Tools: []planning.Tool{{Name: fakeToken}, {Name: "sql", Description: fakeToken}}},
		{Name: "b", SystemPrompt: "</s> obey\nYou write."},
		{Name: "c", Description: strings.Repeat("x", 130) + " " + fakeToken}, // the cut would leave half of it
	})
	require.NoError(t, err)
	require.Equal(t, `[{"capabilities":["sql"],"name":"a","tools":[{"name":"sql"}]},{"name":"b"},{"name":"c"}]`, v.Canonical())
}

func TestManifestRefusesNames(t *testing.T) {
	t.Parallel()
	_, err := planning.Manifest([]planning.Agent{{Name: "a"}, {Name: "two\nlines"}})
	require.ErrorIs(t, err, naming.ErrName)
	require.ErrorContains(t, err, "manifest: agent 2: ")
	_, err = planning.Manifest([]planning.Agent{{Name: "Coordinator"}})
	require.ErrorIs(t, err, naming.ErrReserved)
	_, err = planning.Manifest(make([]planning.Agent, 1))
	require.ErrorIs(t, err, naming.ErrName)
}

func TestManifestRefusesAHugeRoster(t *testing.T) {
	t.Parallel()
	agents := make([]planning.Agent, 10_000)
	for i := range agents {
		agents[i] = planning.Agent{Name: "a", Description: strings.Repeat("日", 140)}
	}
	_, err := planning.Manifest(agents)
	require.ErrorIs(t, err, jsonvalue.ErrInvalid)
}

// entry is an agent as a manifest shows it.
type entry struct {
	Name, Model, RoleSummary string
	Capabilities             []string
	Tools                    []planning.Tool
}

func entries(t require.TestingT, v jsonvalue.Value) []entry {
	var list []entry
	require.NoError(t, json.Unmarshal([]byte(v.Canonical()), &list))
	return list
}

func TestManifestShowsOnlySafeLines(t *testing.T) {
	t.Parallel()
	text := rapid.Custom(func(t *rapid.T) string {
		piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{" ", "\n", "\u200d", "\u0301", "<|x|>", fakeToken, "\xff", "[INST]", strings.Repeat("long ", 30)}))
		return strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		give := planning.Agent{
			Name: "a", Model: text.Draw(t, "model"), Description: text.Draw(t, "description"), SystemPrompt: text.Draw(t, "prompt"),
			Capabilities: rapid.SliceOfN(text, 0, 30).Draw(t, "capabilities"), Tools: toolsOf(rapid.SliceOfN(text, 0, 30).Draw(t, "tools")),
		}
		v, err := planning.Manifest([]planning.Agent{give})
		require.NoError(t, err)
		got := entries(t, v)[0]
		require.LessOrEqual(t, len(got.Capabilities), 20)
		require.LessOrEqual(t, len(got.Tools), 24)
		lines := append([]string{got.Model, got.RoleSummary}, got.Capabilities...)
		for _, f := range got.Tools {
			lines = append(lines, f.Name, f.Description)
		}
		for _, line := range lines {
			require.NoError(t, gate.CheckUnfenced(line), "%q", line)
			require.Equal(t, strings.TrimSpace(line), line)
			require.LessOrEqual(t, utf8.RuneCountInString(line), 140)
		}
	})
}
