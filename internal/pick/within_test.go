package pick_test

import (
	"testing"

	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s, t said
		want bool
	}{
		{said{}, said{}, true},
		{said{lists: [][]task.Path{{"/a"}}}, said{}, true},
		{said{}, said{lists: [][]task.Path{{"/a"}}}, false},
		{said{}, said{blocks: []task.Path{"ssn"}}, false},
		{said{blocks: []task.Path{"SSN", "x"}}, said{blocks: []task.Path{"ssn"}}, true},
		{said{blocks: []task.Path{"/a"}}, said{blocks: []task.Path{"/a/b"}}, true},
		{said{blocks: []task.Path{"/a/b"}}, said{blocks: []task.Path{"/a"}}, false},
		{said{blocks: []task.Path{"b"}}, said{blocks: []task.Path{"/a/b/c"}}, true},
		{said{blocks: []task.Path{"/a/b"}}, said{blocks: []task.Path{"b"}}, false},
		{said{lists: [][]task.Path{{"/a", "/b/c"}}}, said{lists: [][]task.Path{{"/a", "/b/**"}}}, true},
		{said{lists: [][]task.Path{{"/a", "/c"}}}, said{lists: [][]task.Path{{"/a", "/b/**"}}}, false},
		{said{lists: [][]task.Path{{"/a/**", "/c"}, {"/a/b", "/d"}}}, said{lists: [][]task.Path{{"/a/b"}}}, true},
		{said{lists: [][]task.Path{{"/category"}}}, said{blocks: []task.Path{"ssn"}}, true},
		{said{lists: [][]task.Path{{"/category/**"}}}, said{blocks: []task.Path{"ssn"}}, false},
		{said{lists: [][]task.Path{{"/category/**"}}}, said{blocks: []task.Path{"/ssn"}}, true},
		{said{lists: [][]task.Path{{"/a"}, {"/b"}}}, said{lists: [][]task.Path{{"/c"}}}, true},
	} {
		require.Equal(t, tt.want, tt.s.build(t).Within(tt.t.build(t)), "%v within %v", tt.s, tt.t)
	}
	require.True(t, pick.Selection{}.Within(pick.Selection{}))
}

func TestWhatIsWithinSelectsNoMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		v := number(drawValue(t, 4), &n)
		wide := drawSaid(t, false)
		narrow := drawSaid(t, false)
		if rapid.Bool().Draw(t, "alike") {
			narrow.lists, narrow.blocks = append(narrow.lists, wide.lists...), append(narrow.blocks, wide.blocks...)
		}
		s, w := narrow.build(t), wide.build(t)
		if s.Within(w) {
			require.Subset(t, scalars(w.Apply(v)), scalars(s.Apply(v)))
		}
	})
}
