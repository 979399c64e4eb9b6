package sharedmem_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/sharedmem"
	"github.com/runteam/runteam/task"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	m := sharedmem.New(nil)
	note(t, m, "ana", "plan", "p", 0)
	result(t, m, "bob", "t1", "1", 0)
	result(t, m, "ana", "t2", "2", 0)
	note(t, m, "bob", "plan", "q", 0)
	result(t, m, "ana", "t3", "3", 0)
	all := []string{"ana/plan=p", "ana/task:t2:result=2", "ana/task:t3:result=3", "bob/task:t1:result=1", "bob/plan=q"}
	var none, absent []task.ID
	none = []task.ID{}
	odd := func(id task.ID) bool { return id != "t2" }
	tests := []struct {
		name string
		give sharedmem.Filter
		want []string
	}{
		{"no list", sharedmem.Everything(), all},
		{"zero value", sharedmem.Filter{}, nil},
		{"no ids", sharedmem.Only(), nil},
		{"empty list", sharedmem.Only(none...), nil},
		{"a list that was forgotten", sharedmem.Only(absent...), nil},
		{"one", sharedmem.Only("t2"), []string{"ana/task:t2:result=2"}},
		{"agents in the order of what is shown", sharedmem.Only("t3", "t1"), []string{"bob/task:t1:result=1", "ana/task:t3:result=3"}},
		{"twice", sharedmem.Only("t1", "t1"), []string{"bob/task:t1:result=1"}},
		{"unknown", sharedmem.Only("t9"), nil},
		{"the empty id is no note", sharedmem.Only(""), nil},
		{"list and notes", sharedmem.Only("t3").AndNotes(), []string{"ana/plan=p", "ana/task:t3:result=3", "bob/plan=q"}},
		{"notes", sharedmem.Filter{}.AndNotes(), []string{"ana/plan=p", "bob/plan=q"}},
		{"where", sharedmem.Where(odd), []string{"bob/task:t1:result=1", "ana/task:t3:result=3"}},
		{"where, and notes", sharedmem.Where(odd).AndNotes(), []string{"ana/plan=p", "ana/task:t3:result=3", "bob/task:t1:result=1", "bob/plan=q"}},
		{"where nothing says", sharedmem.Where(nil), nil},
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
	m := sharedmem.New(nil)
	result(t, m, "ana", "t1", "1", 0)
	result(t, m, "ana", "t2", "2", 0)
	ids := []task.ID{"t1"}
	f := sharedmem.Only(ids...)
	ids[0] = "t2"
	require.Equal(t, []string{"ana/task:t1:result=1"}, lines(t, m, f))
	_ = f.AndNotes() // makes another
	note(t, m, "ana", "k", "n", 0)
	require.Equal(t, []string{"ana/task:t1:result=1"}, lines(t, m, f))
}
