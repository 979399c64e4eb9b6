package toolschema_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/toolschema"
)

// namesAt returns the names under which a form sends members, by the names of the schema.
func namesAt(t require.TestingT, form *toolschema.Form, names []string) map[string]string {
	sent := map[string]string{}
	for _, name := range names {
		arguments, err := json.Marshal(map[string]int{name: 1})
		require.NoError(t, err)
		var members map[string]int
		require.NoError(t, json.Unmarshal([]byte(form.Sent(string(arguments))), &members))
		require.Len(t, members, 1)
		for as := range members {
			sent[name] = as
		}
	}
	return sent
}

// TestNamesAreSentApart checks that properties of any names are sent under names that are legal and
// different, and come back, wherever a schema has them: also if some have, on purpose, the name under
// which another one is sent.
func TestNamesAreSentApart(t *testing.T) {
	t.Parallel()
	legal := map[toolschema.Level]*regexp.Regexp{
		toolschema.Full: regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`), toolschema.Known: regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`),
	}
	legal[toolschema.Unbounded] = legal[toolschema.Known]
	rapid.Check(t, func(t *rapid.T) {
		aName := rapid.OneOf(rapid.String(), rapid.StringMatching(`[$0-9_]?[a-b .]{0,70}`), rapid.SampledFrom(names))
		names := rapid.SliceOfNDistinct(aName, 1, 6, rapid.ID).Draw(t, "names")
		where := rapid.SampledFrom([]string{"properties", "nested", "moved", "enum", "required"}).Draw(t, "where")
		level := rapid.SampledFrom(slices.Sorted(maps.Keys(legal))).Draw(t, "level")
		for range rapid.IntRange(0, 3).Draw(t, "rounds") { // each gives some names a rival
			for _, as := range namesAt(t, aForm(t, where, names, level), names) {
				if !slices.Contains(names, as) && rapid.Bool().Draw(t, "rival") {
					names = append(names, as)
				}
			}
		}
		form := aForm(t, where, names, level)
		sent := namesAt(t, form, names)
		require.Len(t, slices.Compact(slices.Sorted(maps.Values(sent))), len(names), "%q", sent)
		arguments := map[string]any{}
		for i, name := range names {
			if where != "enum" && where != "required" || i == 0 {
				require.Regexp(t, legal[level], sent[name])
			}
			arguments[name] = map[string]any{name: i}
		}
		raw, err := json.Marshal(arguments)
		require.NoError(t, err)
		require.JSONEq(t, string(raw), form.Original(form.Sent(string(raw))))
	})
}

// aForm returns a form of a schema that has the names at a place. Only the first is a property of an
// enum, or of an object that requires all.
func aForm(t require.TestingT, where string, names []string, level toolschema.Level) *toolschema.Form {
	all := object{}
	for _, name := range names {
		all[name] = object{"type": "object"}
	}
	first := object{names[0]: all[names[0]]}
	s := map[string]object{
		"properties": {"type": "object", "properties": all},
		"nested":     {"type": "object", "properties": object{"list": object{"type": "array", "items": object{"properties": all}}}},
		"moved":      {"type": "object", "properties": object{"p": object{"$ref": "#/components/schemas/P"}}, "components": object{"schemas": object{"P": object{"properties": all}}}},
		"enum":       {"type": "object", "properties": object{"p": object{"properties": first, "enum": []any{all}}}},
		"required":   {"type": "object", "properties": first, "required": names},
	}[where]
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	return toolschema.New(raw).Form(level)
}
