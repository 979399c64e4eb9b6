package pick_test

import (
	"encoding/json"
	"math/rand"
	"strconv"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drawValue(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case depth > 0 && kind < 4:
		out := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			out[anyName().Draw(t, "name")] = drawValue(t, depth-1)
		}
		return out
	case depth > 0 && kind < 7:
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			out = append(out, drawValue(t, depth-1))
		}
		return out
	}
	return rapid.SampledFrom([]any{nil, true, "text", json.Number("12345678901234567890")}).Draw(t, "scalar")
}

func drawPath(t *rapid.T, names *rapid.Generator[string]) string {
	var b strings.Builder
	for range rapid.IntRange(0, 3).Draw(t, "segments") {
		if rapid.IntRange(0, 2).Draw(t, "any") == 0 {
			b.WriteString("/*")
			continue
		}
		b.WriteString(naming.Pointer(names.Draw(t, "segment")))
	}
	return b.String()
}

func drawAllow(t *rapid.T) task.Path {
	p := drawPath(t, pathName().Filter(func(s string) bool { return s != "1" }))
	if rapid.Bool().Draw(t, "deep") {
		p += "/**"
	}
	return task.Path(p)
}

func drawBlock(t *rapid.T, numbers bool) task.Path {
	usable := pathName().Filter(func(s string) bool { return numbers || s != "1" })
	name := naming.Pointer(usable.Filter(func(s string) bool { return s != "" }).Draw(t, "name"))[1:]
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		return task.Path(name)
	case 1:
		return task.Path("/**/" + name)
	case 2:
		return task.Path("/" + name + "/**")
	}
	if p := drawPath(t, usable); p != "" {
		return task.Path(p)
	}
	return task.Path("/" + name)
}

// said is a selection as it is said, to build it in one order or another.
type said struct {
	lists  [][]task.Path
	blocks []task.Path
}

func drawSaid(t *rapid.T, numbers bool) (out said) {
	for range rapid.IntRange(0, 3).Draw(t, "lists") {
		list := []task.Path{}
		for range rapid.IntRange(0, 3).Draw(t, "paths") {
			list = append(list, drawAllow(t))
		}
		out.lists = append(out.lists, list)
	}
	for range rapid.IntRange(0, 2).Draw(t, "blocks") {
		out.blocks = append(out.blocks, drawBlock(t, numbers))
	}
	return out
}

func (s said) build(t require.TestingT) pick.Selection {
	out := pick.Everything()
	var err error
	for _, list := range s.lists {
		out, err = out.Only(list...)
		require.NoError(t, err)
	}
	out, err = out.Except(s.blocks...)
	require.NoError(t, err)
	return out
}

func text(t require.TestingT, v any) string {
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return string(out)
}

// Requirement: G5.
func TestApplyMatchesAReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v, s := drawValue(t, 4), drawSaid(t, true)
		before := text(t, v)
		got := s.build(t).Apply(v)
		require.Equal(t, before, text(t, v), "the value is not changed")

		o := oracle{lists: s.lists, blocks: s.blocks}
		want, any := o.apply(v)
		require.Equal(t, any, got.Any)
		if any {
			require.Equal(t, want, got.Value)
		} else {
			require.Nil(t, got.Value)
		}
		require.Equal(t, o.picked.Unmatched, got.Unmatched)
		require.Subset(t, got.Unmatched, got.Containers)
		require.ElementsMatch(t, sorted(o.picked.Dropped), got.Dropped, "dropped of %s", before)
		require.ElementsMatch(t, sorted(o.picked.Kept), got.Kept, "kept of %s", before)
	})
}

// A number names an element of the value that is given, so a second time it
// names another one: blocks with numbers have no such law.
//
// Requirement: G5.
func TestApplyTwiceIsApplyOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v, s := drawValue(t, 4), drawSaid(t, false).build(t)
		once := s.Apply(v)
		if once.Any {
			require.Equal(t, once.Value, s.Apply(once.Value).Value)
		}
	})
}

// Requirement: G5.
func TestMoreListsAndBlocksNeverDeliverMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v, s := number(drawValue(t, 4), new(int)), drawSaid(t, true)
		wide := s.build(t)
		narrow, err := wide.Only(drawAllow(t), drawAllow(t))
		require.NoError(t, err)
		blocked, err := wide.Except(drawBlock(t, true))
		require.NoError(t, err)
		for _, less := range []pick.Selection{narrow, blocked, narrow.And(blocked)} {
			require.Subset(t, scalars(wide.Apply(v)), scalars(less.Apply(v)))
		}
	})
}

// number gives each scalar a number of its own.
func number(v any, n *int) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = number(v[name], n)
		}
		return v
	case []any:
		for i := range v {
			v[i] = number(v[i], n)
		}
		return v
	}
	*n++
	return json.Number(strconv.Itoa(*n))
}

func scalars(p pick.Picked) []json.Number {
	out := []json.Number{}
	if !p.Any {
		return out
	}
	_, values := places(p.Value, nil)
	for _, v := range values {
		if n, ok := v.(json.Number); ok {
			out = append(out, n)
		}
	}
	return out
}

// Requirement: G12.
func TestAndIsCommutativeAssociativeAndIdempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := drawValue(t, 4)
		first, second, third := drawSaid(t, true), drawSaid(t, true), drawSaid(t, true)
		a, b, c := first.build(t), second.build(t), third.build(t)
		same := func(s, u pick.Selection) {
			require.Equal(t, s.Apply(v), u.Apply(v))
			require.Equal(t, s.String(), u.String())
		}
		same(a.And(b), b.And(a))
		same(a.And(b).And(c), a.And(b.And(c)))
		same(a.And(a), a)
		same(a.And(pick.Everything()), a)
		same(pick.Everything().And(a), a)
		require.False(t, a.And(pick.Selection{}).Apply(v).Any)

		joined := said{append(first.lists, second.lists...), append(first.blocks, second.blocks...)}
		shuffle := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		shuffle.Shuffle(len(joined.lists), func(i, j int) {
			joined.lists[i], joined.lists[j] = joined.lists[j], joined.lists[i]
		})
		for _, l := range append(joined.lists, joined.blocks) {
			shuffle.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
		}
		same(a.And(b), joined.build(t))
	})
}

// leaves returns the ways to every scalar and empty container.
func leaves(v any) (out [][]token) {
	all, values := places(v, nil)
	for i, l := range all {
		object, _ := values[i].(map[string]any)
		array, _ := values[i].([]any)
		if len(object)+len(array) == 0 {
			out = append(out, l.way)
		}
	}
	return out
}

func TestStaticAnswersNeverMissWhatIsDelivered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v, s := drawValue(t, 4), drawSaid(t, true).build(t)
		got := s.Apply(v)
		if !got.Any {
			return
		}
		require.False(t, s.Empty())
		lists, _ := s.Paths()
		for _, way := range leaves(got.Value) {
			path := tokensOf(way)
			for i := range len(path) + 1 {
				require.True(t, s.MayPass(path[:i]), "%v of %v", path[:i], s)
			}
			for i, tok := range way {
				if tok.index < 0 {
					require.True(t, s.MayPassName(tok.name), "%q of %v", tok.name, s)
				}
				wild := append([]string(nil), path...)
				wild[i] = "*"
				require.True(t, s.MayPass(wild), "%v of %v", wild, s)
			}
			for _, list := range lists {
				covered := false
				for _, p := range list {
					covered = covered || pick.Covers(p, path)
				}
				require.True(t, covered, "%v by %v", path, list)
			}
		}
	})
}

// A selection that static answers call empty, or a name that they say cannot
// pass, must be so for the values that the paths themselves describe.
func TestStaticAnswersAreExactForValuesMadeOfThePaths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := []task.Path{drawAllow(t)}
		s := said{lists: [][]task.Path{list}, blocks: []task.Path{drawBlock(t, true)}}.build(t)
		text := strings.TrimSuffix(string(list[0]), "/**")
		var v any = "leaf"
		if text != "" {
			segments := strings.Split(text[1:], "/")
			for i := len(segments) - 1; i >= 0; i-- {
				name := unescape(segments[i])
				if name == "*" {
					name = "a name that nobody blocks"
				}
				v = map[string]any{name: v}
			}
		}
		require.Equal(t, !s.Apply(v).Any, s.Empty(), "%v", s)
	})
}
