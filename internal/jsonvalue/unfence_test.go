package jsonvalue_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/jsonvalue"
)

func TestUnfence(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, give, before, body, after string }{
		{"nothing", "", "", "", ""},
		{"a text", " plain \n", " ", "plain", " \n"},
		{"a fence", "```json\n{\"a\":1}\n```", "```json\n", `{"a":1}`, "\n```"},
		{"blanks around it", "\n```\n [1] \n```\n", "\n```\n ", "[1]", " \n```\n"},
		{"no end", "```json\n{}", "", "```json\n{}", ""},
		{"words behind it", "```\n{}\n``` so", "", "```\n{}\n``` so", ""},
		{"a value on its first line", "```{\n}```", "", "```{\n}```", ""},
		{"one line", "```{}```", "", "```{}```", ""},
	}
	for _, tt := range tests {
		before, body, after := jsonvalue.Unfence(tt.give)
		require.Equal(t, []string{tt.before, tt.body, tt.after}, []string{before, body, after}, tt.name)
	}
}

func TestUnfenceLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("`\n {}[]ab"))).Draw(t, "text")
		before, body, after := jsonvalue.Unfence(text)
		require.Equal(t, text, before+body+after)
	})
}
