package pick_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/runteam/runteam/internal/pick"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What follows from many lists is worked out when it is asked for, and not at each step.
func TestAndIsComputedOnDemand(t *testing.T) {
	all := pick.Everything()
	for i := range 1000 {
		one := only(t, strings.Join(wildcards(i), " "), "ssn")
		before := all
		all = before.And(one)
		require.LessOrEqual(t, testing.AllocsPerRun(1, func() { before.And(one) }), 3.0)
		require.LessOrEqual(t, testing.AllocsPerRun(1, func() { all.And(one) }), 0.0, "it is in there already")
	}
	lists, blocks := all.Paths()
	require.Len(t, lists, 1000)
	require.Len(t, blocks, 1)
	require.False(t, all.Empty())
	require.True(t, all.And(only(t, "/z/q", "")).Empty())
}

func TestSelectionIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := pick.Everything()
	for i := range 20 {
		s = s.And(only(t, strings.Join(wildcards(i), " "), fmt.Sprintf("secret%d", i)))
	}
	v := map[string]any{"name": map[string]any{"secret3": "x", "first": "Ada"}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := s.Apply(v); len(got.Value.(map[string]any)) != 1 {
				t.Error("what is blocked went through")
			}
			if s.Empty() || s.MayPass([]string{"name", "secret19"}) || s.And(s) != s || !strings.Contains(s.String(), "secret0") {
				t.Error("the answers differ from those of one caller")
			}
		})
	}
	wg.Wait()
}

func TestStaticAnswersDoNotDependOnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawSaid(t, true).build(t), drawSaid(t, true).build(t)
		path := rapid.SliceOfN(anyName(), 0, 4).Draw(t, "path")
		ab, ba := a.And(b), b.And(a)
		require.Equal(t, ab.Empty(), ba.Empty())
		require.Equal(t, ab.Whole(), a.Whole() && b.Whole())
		require.Equal(t, ab.MayPass(path), ba.MayPass(path))
		if ab.MayPass(path) {
			require.True(t, a.MayPass(path) && b.MayPass(path), "more lists let no more pass")
		}
		if a.Empty() {
			require.True(t, ab.Empty())
		}
	})
}
