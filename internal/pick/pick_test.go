package pick_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

func decode(t require.TestingT, raw string) any {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	var v any
	require.NoError(t, dec.Decode(&v))
	return v
}

// paths splits a list written with blanks; `""` is the whole value.
func paths(list string) (out []task.Path) {
	for p := range strings.FieldsSeq(list) {
		out = append(out, task.Path(strings.ReplaceAll(p, `""`, "")))
	}
	return out
}

func only(t require.TestingT, allow, block string) pick.Selection {
	s, err := pick.Everything().Only(paths(allow)...)
	require.NoError(t, err)
	s, err = s.Except(paths(block)...)
	require.NoError(t, err)
	return s
}

// Requirement: G5.
func TestPathsSelectAtAnyDepth(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, value, allow, block string
		want                      string // "" for nothing
		kept, dropped             string
		unmatched, containers     string
	}{
		{name: "a scalar", value: `{"a":1,"b":2}`, allow: "/a", want: `{"a":1}`, kept: "/a", dropped: "/b"},
		{name: "null is a scalar", value: `{"a":null}`, allow: "/a", want: `{"a":null}`, kept: "/a"},
		{name: "a container needs more", value: `{"a":{"x":1}}`, allow: "/a", dropped: "/a", unmatched: "/a", containers: "/a"},
		{name: "an array needs more", value: `{"a":[1]}`, allow: "/a", dropped: "/a", unmatched: "/a", containers: "/a"},
		{name: "an empty object needs more", value: `{"a":{}}`, allow: "/a", dropped: "/a", unmatched: "/a", containers: "/a"},
		{name: "a subtree", value: `{"a":{"x":[1,{"y":{}}]},"b":2}`, allow: "/a/**", want: `{"a":{"x":[1,{"y":{}}]}}`, kept: "/a", dropped: "/b"},
		{name: "a subtree may be a scalar", value: `{"a":1}`, allow: "/a/**", want: `{"a":1}`, kept: "/a"},
		{name: "the whole", value: `{"a":{"x":1}}`, allow: `""`, want: `{"a":{"x":1}}`, kept: `""`},
		{name: "the whole, written out", value: `{"a":{"x":1}}`, allow: "/**", want: `{"a":{"x":1}}`, kept: `""`},
		{name: "a path within what is granted matches too", value: `{"a":{"x":1}}`, allow: `"" /a/x /a/y`, want: `{"a":{"x":1}}`, kept: `""`, unmatched: "/a/y"},
		{name: "in arrays, order kept and gaps closed", value: `{"items":[{"id":3},{"no":1},{"id":1,"no":2}]}`, allow: "/items/*/id",
			want: `{"items":[{"id":3},{"id":1}]}`, kept: "/items/*/id", dropped: "/items/* /items/*/no"},
		{name: "elements", value: `{"a":[1,[2],3]}`, allow: "/a/*", want: `{"a":[1,3]}`, kept: "/a/*", dropped: "/a/*"},
		{name: "any member", value: `{"a":{"x":1},"b":{"x":2,"y":3}}`, allow: "/*/x", want: `{"a":{"x":1},"b":{"x":2}}`,
			kept: "/a/x /b/x", dropped: "/b/y"},
		{name: "an empty array in a subtree stays", value: `{"a":{"x":[]}}`, allow: "/a/**", want: `{"a":{"x":[]}}`, kept: "/a"},
		{name: "what was granted and emptied stays", value: `{"a":{"ssn":1},"b":[{"ssn":2}],"c":3}`, allow: `""`, block: "ssn",
			want: `{"a":{},"b":[{}],"c":3}`, kept: "/c", dropped: "/a/ssn /b/*/ssn"},
		{name: "what was emptied and not granted goes", value: `{"a":{"ssn":1,"x":2},"c":3}`, allow: "/a/y /a/ssn /c", block: "ssn",
			want: `{"c":3}`, kept: "/c", dropped: "/a", unmatched: "/a/y"},
		{name: "a block takes the subtree", value: `{"a":{"b":{"c":1},"d":2}}`, allow: `""`, block: "/a/b",
			want: `{"a":{"d":2}}`, kept: "/a/d", dropped: "/a/b"},
		{name: "a block is no deeper than it says", value: `{"a":{"b":1},"b":2}`, allow: `""`, block: "/a/b",
			want: `{"a":{},"b":2}`, kept: "/b", dropped: "/a/b"},
		{name: "a name blocks at any depth", value: `{"b":1,"a":[{"b":2,"c":3}]}`, allow: `""`, block: "/**/b",
			want: `{"a":[{"c":3}]}`, kept: "/a/*/c", dropped: "/a/*/b /b"},
		{name: "a number blocks an element", value: `{"a":["x","y","z"]}`, allow: `""`, block: "/a/1",
			want: `{"a":["x","z"]}`, kept: "/a/*", dropped: "/a/*"},
		{name: "a number blocks a member", value: `{"a":{"1":"x","2":"y"}}`, allow: `""`, block: "/a/1",
			want: `{"a":{"2":"y"}}`, kept: "/a/2", dropped: "/a/1"},
		{name: "a block of all elements", value: `{"a":[1,2],"b":1}`, allow: `""`, block: "/a/*", want: `{"a":[],"b":1}`, kept: "/b", dropped: "/a/*"},
		{name: "a block wins over an allow beneath it", value: `{"a":{"x":1}}`, allow: "/a/x", block: "/a", dropped: "/a"},
		{name: "a blocked match is no unmatched path", value: `{"a":{"x":1},"b":1}`, allow: "/a/x /b /c", block: "a",
			want: `{"b":1}`, kept: "/b", dropped: "/a", unmatched: "/c"},
		{name: "names compare after NFC", value: "{\"caf\u0065\u0301\":1}", allow: "/caf\u00e9", want: "{\"caf\u0065\u0301\":1}", kept: "/caf\u0065\u0301"},
		{name: "the Kelvin sign is a K", value: "{\"\u212a\":1}", allow: "/K", want: "{\"\u212a\":1}", kept: "/\u212a"},
		{name: "names compare exactly otherwise", value: `{"Score":1,"ｓcore":2,"score\u200b":3}`, allow: "/score",
			dropped: "/Score /score\u200b /ｓcore", unmatched: "/score"},
		{name: "escapes", value: `{"a/b":1,"c~d":2,"~1":3}`, allow: "/a~1b /c~0d /~01", want: `{"a/b":1,"c~d":2,"~1":3}`, kept: "/a~1b /c~0d /~01"},
		{name: "the empty name", value: `{"":1,"a":2}`, allow: "/", want: `{"":1}`, kept: "/", dropped: "/a"},
		{name: "nothing granted, all named", value: `{"a":1,"b":2,"c":{},"d":[1],"e":{"x":1}}`, dropped: "/a /b /c /d /e"},
		{name: "an empty root", value: `{}`, allow: "/a", dropped: `""`, unmatched: "/a"},
		{name: "an empty root as a whole", value: `{}`, allow: `""`, want: `{}`, kept: `""`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			requirePicked(t, only(t, tt.allow, tt.block).Apply(decode(t, tt.value)), tt.want, tt.kept, tt.dropped, tt.unmatched)
			require.ElementsMatch(t, paths(tt.containers), only(t, tt.allow, tt.block).Apply(decode(t, tt.value)).Containers)
		})
	}
}

func requirePicked(t *testing.T, got pick.Picked, want, kept, dropped, unmatched string) {
	t.Helper()
	require.Equal(t, want != "", got.Any)
	if want == "" {
		require.Nil(t, got.Value)
	} else {
		require.Equal(t, decode(t, want), got.Value)
	}
	require.ElementsMatch(t, paths(kept), got.Kept, "kept")
	require.ElementsMatch(t, paths(dropped), got.Dropped, "dropped")
	require.ElementsMatch(t, paths(unmatched), got.Unmatched, "unmatched")
}

// Requirement: G6.
func TestRootIsOneValue(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, value, allow, want, kept, dropped, unmatched string }{
		{name: "a text under a member", value: `"a text"`, allow: "/category", dropped: `""`, unmatched: "/category"},
		{name: "a text under any member", value: `"a text"`, allow: "/*", dropped: `""`, unmatched: "/*"},
		{name: "a text as a whole", value: `"a text"`, allow: `""`, want: `"a text"`, kept: `""`},
		{name: "a number as a whole, written out", value: `7`, allow: "/**", want: `7`, kept: `""`},
		{name: "null under a member", value: `null`, allow: "/category", dropped: `""`, unmatched: "/category"},
		{name: "null as a whole", value: `null`, allow: `""`, want: `null`, kept: `""`},
		{name: "an array under a member", value: `[{"id":1}]`, allow: "/id", dropped: "/*", unmatched: "/id"},
		{name: "a pointer into an array", value: `[{"id":1,"x":2},{"id":3}]`, allow: "/*/id", want: `[{"id":1},{"id":3}]`, kept: "/*/id", dropped: "/*/x"},
		{name: "an array as a whole", value: `[1,[2]]`, allow: `""`, want: `[1,[2]]`, kept: `""`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			requirePicked(t, only(t, tt.allow, "").Apply(decode(t, tt.value)), tt.want, tt.kept, tt.dropped, tt.unmatched)
		})
	}
}

var spellings = []string{"ssn", "SSN", "sSn", "s\u200bsn", "ｓｓｎ", "S\u00ADSN", "ſſn", "ss\ufe0fn", "\u2066ssn\u2069", "ⓢⓢⓝ"}

// Requirement: G10.
func TestBlocksCompareLoosely(t *testing.T) {
	t.Parallel()
	for _, block := range spellings {
		for _, name := range spellings {
			for _, form := range []string{"%s", "/**/%s", "/%s", "/*/%s", "/**/%s/**"} {
				path := task.Path(fmt.Sprintf(form, block))
				v := map[string]any{name: "078-05-1120", "in": map[string]any{name: []any{"x"}, "b": "y"}, "list": []any{map[string]any{name: 1.5}}}
				got := except(t, path).Apply(v)
				rest := text(t, got.Value)
				require.Equal(t, strings.HasPrefix(form, "/*/"), strings.Contains(rest, "078"), "%q by %q: %s", name, path, rest)
				require.Equal(t, form == "/%s", strings.Contains(rest, `"x"`), "%q by %q: %s", name, path, rest)
				require.Contains(t, rest, `"y"`)
				require.Equal(t, strings.HasPrefix(form, "/*/"), except(t, path).MayPass([]string{name}))
			}
		}
	}
}

// Every character that has another form is blocked by each of its forms.
//
// Requirement: G10.
func TestEveryFormOfACharacterIsOneName(t *testing.T) {
	t.Parallel()
	for r := rune(0x80); r <= 0x2ffff; r++ {
		if !slowtest.Enabled() && r > 0x24f && r%11 > 0 {
			continue // all of Latin, and some of each other script
		}
		if norm.NFKD.IsNormalString(string(r)) && unicode.ToUpper(r) == unicode.ToLower(r) || 0xac00 <= r && r <= 0xd7a3 {
			continue
		}
		for _, name := range []string{"a" + string(r) + "z", "a" + string(r) + "\u0345\u0301z"} {
			forms := map[string]any{}
			for _, form := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
				forms[form.String(name)] = "x"
				forms[form.String(cases.Fold().String(norm.NFD.String(name)))] = "x"
			}
			if len(forms) < 2 || strings.ContainsFunc(name, unicode.IsControl) || strings.ContainsFunc(name, naming.EndsLine) {
				continue
			}
			for form := range forms {
				if strings.Contains(form, "*") {
					continue // no part of a segment
				}
				require.Empty(t, except(t, "/**/"+task.Path(naming.Pointer(form)[1:])).Apply(forms).Value, "%U: %+q of %+q", r, form, forms)
			}
		}
	}
}

func except(t require.TestingT, p task.Path) pick.Selection {
	s, err := pick.Everything().Except(p)
	require.NoError(t, err, "%q", p)
	return s
}

// Requirement: G10.
func TestGrantsCompareExactly(t *testing.T) {
	t.Parallel()
	for _, grant := range spellings {
		for _, name := range spellings {
			s, err := pick.Everything().Only(task.Path("/" + grant))
			require.NoError(t, err)
			require.Equal(t, grant == name, s.Apply(map[string]any{name: "1"}).Any, "%q by %q", name, grant)
			require.Equal(t, grant == name, s.MayPass([]string{name}))
			require.Equal(t, grant == name, pick.Covers(task.Path("/"+grant), []string{name}))
		}
	}
}

// Requirement: G1.
func TestZeroSelectionSelectsNothing(t *testing.T) {
	t.Parallel()
	v := decode(t, `{"a":1,"b":"x","c":[1],"d":{},"e":null}`)
	empty, err := pick.Everything().Only()
	require.NoError(t, err)
	later, err := pick.Selection{}.Only("", "/**")
	require.NoError(t, err)
	for _, s := range []pick.Selection{{}, empty, later, pick.Selection{}.And(pick.Everything())} {
		got := s.Apply(v)
		require.False(t, got.Any)
		require.Nil(t, got.Value)
		require.Empty(t, got.Kept)
		require.Len(t, got.Dropped, 5)
		require.True(t, s.Empty())
		require.False(t, s.Whole())
		require.False(t, s.MayPass(nil))
		require.False(t, s.MayPassName("a"))
		require.Equal(t, "nothing", s.String())
	}
}

func TestEverythingReturnsTheSameValue(t *testing.T) {
	t.Parallel()
	v := map[string]any{"a": "x"}
	got := pick.Everything().Apply(v)
	v["b"] = "y"
	require.Equal(t, pick.Picked{Value: v, Any: true, Kept: []task.Path{""}}, got)
}

// Requirement: G11.
func TestAppliedValueSharesNothingWithTheOriginal(t *testing.T) {
	t.Parallel()
	v := decode(t, `{"a":{"x":[{"y":1}]},"b":[[1],{"z":2}]}`).(map[string]any)
	got := only(t, `"" /a/** /b/*/*`, "ssn").And(only(t, "/**", "")).Apply(v)
	before := text(t, got.Value)
	v["a"].(map[string]any)["x"].([]any)[0].(map[string]any)["y"] = "changed"
	v["b"].([]any)[1].(map[string]any)["z"] = "changed"
	v["b"].([]any)[0].([]any)[0] = "changed"
	require.Equal(t, before, text(t, got.Value))
}

func TestValuesThatAreNotJSONAreDropped(t *testing.T) {
	t.Parallel()
	v := map[string]any{"a": map[string]string{"x": "y"}, "b": []any{func() {}, "z"}, "c": true}
	got := only(t, `""`, "").Apply(v)
	require.Equal(t, map[string]any{"b": []any{"z"}, "c": true}, got.Value)
	require.ElementsMatch(t, []task.Path{"/a", "/b/*"}, got.Dropped)
	require.False(t, only(t, `""`, "").Apply(func() {}).Any)
}

func TestReportsAreBoundedAndTheSameEachTime(t *testing.T) {
	t.Parallel()
	v := map[string]any{}
	for i := range 1000 {
		v[fmt.Sprintf("k%04d", i)] = map[string]any{"a": "x", "b": "y"}
	}
	s := only(t, "/*/a", "")
	first := s.Apply(v)
	require.Len(t, first.Value, 1000)
	require.Len(t, first.Kept, pick.MaxPaths)
	require.Len(t, first.Dropped, pick.MaxPaths)
	require.Equal(t, task.Path("/k0099/b"), first.Dropped[99])
	for range 5 {
		require.Equal(t, first, s.Apply(v))
	}
}

// What is selected does not tell whether a container had members that are
// blocked. One that is granted stays, with whatever is left in it.
//
// Requirement: G54.
func TestEmptiedContainerIsLikeAnEmptyOne(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		allow, block []task.Path
		has, lacks   string // a value with what is blocked, and without it
		want         string
	}{
		{nil, []task.Path{"ssn"}, `{"a":{"ssn":1}}`, `{"a":{}}`, `{"a":{}}`},
		{nil, []task.Path{"ssn"}, `{"ssn":1}`, `{}`, `{}`},
		{nil, []task.Path{"ssn"}, `[{"ssn":1},{"b":{"ssn":1}}]`, `[{},{"b":{}}]`, `[{},{"b":{}}]`},
		{nil, []task.Path{"/a/*/b"}, `{"a":[{"b":1},{"c":1}]}`, `{"a":[{},{"c":1}]}`, `{"a":[{},{"c":1}]}`},
		{[]task.Path{"/a/**"}, []task.Path{"/a/*"}, `{"a":[1,2],"b":1}`, `{"a":[],"b":1}`, `{"a":[]}`},
		{[]task.Path{"/a/**", "/b"}, []task.Path{"/a/x/y"}, `{"a":{"x":{"y":1}}}`, `{"a":{"x":{}}}`, `{"a":{"x":{}}}`},
		// A container of which only parts are granted tells of these alone.
		{[]task.Path{"/a/x", "/b"}, nil, `{"a":{"y":1},"b":1}`, `{"a":{},"b":1}`, `{"b":1}`},
		{[]task.Path{"/a/x", "/b"}, nil, `{"a":{"y":1},"b":1}`, `{"b":1}`, `{"b":1}`},
		{[]task.Path{"/*/x"}, []task.Path{"y"}, `[{"y":1},{"x":1}]`, `[{"x":1}]`, `[{"x":1}]`},
	} {
		s := pick.Everything()
		var err error
		if tt.allow != nil {
			s, err = s.Only(tt.allow...)
			require.NoError(t, err)
		}
		s, err = s.Except(tt.block...)
		require.NoError(t, err)
		for _, value := range []string{tt.has, tt.lacks} {
			got := s.Apply(decode(t, value))
			require.True(t, got.Any, value)
			out, err := json.Marshal(got.Value)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(out), "%v except %v of %s", tt.allow, tt.block, value)
		}
	}
}
