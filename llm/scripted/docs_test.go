package scripted_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm/scripted"
)

// example matches the scripts in the documentation.
var example = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestDocumentedScriptsLoad(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/scripts.md")
	require.NoError(t, err)
	all := example.FindAllSubmatch(text, -1)
	require.Len(t, all, 4)
	for _, m := range all {
		_, err := scripted.Parse("docs/scripts.md", m[1])
		require.NoError(t, err)
	}
	s, err := scripted.Parse("docs/scripts.md", all[0][1])
	require.NoError(t, err)
	require.Equal(t, `{"iban": "DE89 3704"}`+"\n", answerOf(t, s, "", "# Task: Extract facts\n\n## Inputs\n\n### claim\nIBAN: DE89 3704\n"))
	s, err = scripted.Parse("docs/scripts.md", all[3][1])
	require.NoError(t, err)
	require.Equal(t, "The excess is 150.\n- 12 EUR\n",
		answerOf(t, s, "", "# Task: Compare\n\n## Inputs\n\n### claim\nhi\n12 EUR\n\n## Context from prerequisite tasks\n\n### Read policy (by x)\nexcess: 150"))
}
