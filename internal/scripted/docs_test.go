package scripted_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/scripted"
)

// example matches the scripts in the documentation.
var example = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestDocumentedScriptsLoad(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/scripts.md")
	require.NoError(t, err)
	all := example.FindAllSubmatch(text, -1)
	require.Len(t, all, 11)
	for _, m := range all {
		_, err := scripted.Parse("docs/reference/scripts.md", m[1])
		require.NoError(t, err)
	}
	s, err := scripted.Parse("docs/reference/scripts.md", all[0][1])
	require.NoError(t, err)
	require.Equal(t, `{"iban": "DE89 3704"}`+"\n", answerOf(t, s, "", "# Task: Extract facts\n\n## Inputs\n\n### claim\nIBAN: DE89 3704\n"))
	s, err = scripted.Parse("docs/reference/scripts.md", all[9][1])
	require.NoError(t, err)
	require.Equal(t, "The excess is 150.\n- 12 EUR\n",
		answerOf(t, s, "", "# Task: Compare\n\n## Inputs\n\n### claim\nhi\n12 EUR\n\n## Context from prerequisite tasks\n\n### Read policy (by x)\nexcess: 150"))
	s, err = scripted.Parse("docs/reference/scripts.md", all[2][1])
	require.NoError(t, err)
	require.JSONEq(t, `[{"title": "Find causes", "description": "Find out why.", "assignee": "analyst"},
		{"title": "Check causes", "description": "Check them.", "assignee": "critic", "dependsOn": ["Find causes"]}]`,
		answerOf(t, s, coordinatorSystem, "## Goal\n\nWhy?"))
	require.Equal(t, "Margins fell because costs rose.\nNot checked: no time.", answerOf(t, s, "",
		"## Original Goal\n\nWhy?\n\n## Task Results\n\n### Find causes (completed by analyst)\ncosts rose\n\n## Failed Tasks\n\n### Check causes (FAILED)\nError: no time"))
	s, err = scripted.Parse("docs/reference/scripts.md", all[10][1])
	require.NoError(t, err)
	s.Replies = s.Replies[1:]
	require.Equal(t, `{"iban": "DE89 3704", "template": "{{ name }}"}`, answerOf(t, s, "", "# Task: extract facts"))
}

// word matches what a table of the documentation calls a key or a function.
var word = regexp.MustCompile("(?m)^\\| `([a-zA-Z]+)")

// TestDocumentedFunctionsAreComplete compares the documented tables with the error
// messages that list all functions.
func TestDocumentedFunctionsAreComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/scripts.md")
	require.NoError(t, err)
	_, err = scripted.Parse("s.yaml", []byte("replies:\n- {nope: 1}"))
	require.Error(t, err)
	known := regexp.MustCompile(`known are ([a-zA-Z, ]+)`).FindStringSubmatch(err.Error())
	require.NotNil(t, known)
	for key := range strings.SplitSeq(known[1], ", ") {
		require.Regexp(t, "`"+key+"[`:]", string(text), key)
	}
	for _, m := range word.FindAllStringSubmatch(string(text), -1) {
		_, err := scripted.New(&scripted.Script{Replies: []scripted.Reply{{Text: "{{ " + m[1] + " }}"}}}, false)
		if err != nil {
			require.True(t, slices.Contains(strings.Split(known[1], ", "), m[1]), "%s is neither a function nor a key", m[1])
		}
	}
}
