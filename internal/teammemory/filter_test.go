package teammemory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/task"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	note(t, m, "ana", "plan", "p", 0)
	result(t, m, "bob", "t1", "1", 0)
	result(t, m, "ana", "t2", "2", 0)
	note(t, m, "bob", "plan", "q", 0)
	result(t, m, "ana", "t3", "3", 0)
	all := []string{"ana/plan=p", "ana/task:t2:result=2", "ana/task:t3:result=3", "bob/task:t1:result=1", "bob/plan=q"}
	var none, absent []task.ID
	none = []task.ID{}
	odd := func(id task.ID) bool { return id != "t2" }
	notes := func(id task.ID) bool { return id == "" }
	tests := []struct {
		name string
		give teammemory.Filter
		want []string
	}{
		{"no list", teammemory.Everything(), all},
		{"nil", nil, nil},
		{"no ids", teammemory.Only(), nil},
		{"empty list", teammemory.Only(none...), nil},
		{"a list that was forgotten", teammemory.Only(absent...), nil},
		{"one", teammemory.Only("t2"), []string{"ana/task:t2:result=2"}},
		{"agents in the order of what is shown", teammemory.Only("t3", "t1"), []string{"bob/task:t1:result=1", "ana/task:t3:result=3"}},
		{"twice", teammemory.Only("t1", "t1"), []string{"bob/task:t1:result=1"}},
		{"unknown", teammemory.Only("t9"), nil},
		{"the empty id is no note", teammemory.Only(""), nil},
		{"list and notes", func(id task.ID) bool { return notes(id) || id == "t3" }, []string{"ana/plan=p", "ana/task:t3:result=3", "bob/plan=q"}},
		{"notes", notes, []string{"ana/plan=p", "bob/plan=q"}},
		{"results that match", func(id task.ID) bool { return id != "" && odd(id) }, []string{"bob/task:t1:result=1", "ana/task:t3:result=3"}},
		{"all that match", odd, []string{"ana/plan=p", "ana/task:t3:result=3", "bob/task:t1:result=1", "bob/plan=q"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.ElementsMatch(t, tt.want, lines(t, m, tt.give))
			if tt.want != nil {
				require.Equal(t, tt.want, lines(t, m, tt.give))
			}
		})
	}
}

func TestFilterKeepsItsOwnList(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	result(t, m, "ana", "t1", "1", 0)
	result(t, m, "ana", "t2", "2", 0)
	ids := []task.ID{"t1"}
	f := teammemory.Only(ids...)
	ids[0] = "t2"
	require.Equal(t, []string{"ana/task:t1:result=1"}, lines(t, m, f))
	note(t, m, "ana", "k", "n", 0)
	require.Equal(t, []string{"ana/task:t1:result=1"}, lines(t, m, f))
}
