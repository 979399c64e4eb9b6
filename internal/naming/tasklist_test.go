package naming_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/naming"
)

func TestTaskList(t *testing.T) {
	t.Parallel()
	list := naming.TaskList{
		{Title: "Mail[1]", ID: "e5", Name: "Mail[Ann]"},
		{Title: "Send", Key: "mail", ID: "a1"},
		{Title: "Mail", Key: "letter", ID: "b2"},
		{Title: "Letter", ID: "c3", Name: "Send"},
	}
	for name, want := range map[string]string{
		"Mail": "Mail", " mAIL ": "Mail", "letter": "Letter", "send": "Send", "C3": "Letter", "b2": "Mail", "mail[ann]": "Mail[1]", "Mail[1]": "Mail[1]",
	} {
		i, known := list.Find(name)
		require.True(t, known, name)
		require.Equal(t, want, list[i].Title, name)
		indexed, known := list.Index()(name)
		require.True(t, known, name)
		require.Equal(t, i, indexed, name)
	}
	for _, name := range []string{"", " ", "Mai", "Mail[2]"} {
		_, known := list.Find(name)
		require.False(t, known, name)
		_, known = list.Index()(name)
		require.False(t, known, name)
	}
	require.Equal(t, []string{"Mail[Ann]", "Send", "Mail", "Send", "mail", "letter"}, list.Known())
	require.EqualError(t, list.Unknown("Sent"), `unknown task "Sent"; did you mean "Send"?`)
	require.ErrorIs(t, list.Unknown("Sent"), naming.ErrUnknownTask)
}
