package runteam_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sizeOf measures a module m whose files are given, each with a first line "-- path --".
func sizeOf(t *testing.T, text string) measurement {
	t.Helper()
	tree := &sourceTree{token.NewFileSet(), map[string]map[string]*ast.File{}, map[string][]byte{}}
	for part := range strings.SplitSeq(strings.TrimPrefix(text, "-- "), "\n-- ") {
		name, body, _ := strings.Cut(part, " --\n")
		pkg := path.Dir(name)
		body = "package " + path.Base(pkg) + "\n" + body
		file, err := parser.ParseFile(tree.fset, name, body, parser.SkipObjectResolution)
		require.NoError(t, err)
		if tree.files[pkg] == nil {
			tree.files[pkg] = map[string]*ast.File{}
		}
		tree.files[pkg][name], tree.text[name] = file, []byte(body)
	}
	m, err := measure(tree, "m", importerFunc(func(name string) (*types.Package, error) {
		p := types.NewPackage(name, name) // context, as far as these modules need it
		p.Scope().Insert(types.NewTypeName(token.NoPos, p, "Context", nil))
		types.NewNamed(p.Scope().Lookup("Context").(*types.TypeName), types.NewInterfaceType(nil, nil), nil)
		p.MarkComplete()
		return p, nil
	}))
	require.NoError(t, err)
	return m
}

// No way of writing the same type smaller changes what it reaches.
func TestSizeOfATypeStaysWhenItIsMovedAbout(t *testing.T) {
	t.Parallel()
	const fields, operations = 4, 3
	for name, text := range map[string]string{
		"one struct":            "type a struct { b, c, d, e int }; func (a) f() {}; func (*a) g() {}; func (a) h() {}",
		"embedded":              "type a struct { x; y }; type x struct { b, c int }; type y struct { d, e int }; func (a) f() {}; func (*x) g() {}; func (y) h() {}",
		"embedded pointers":     "type a struct { *x; e int }; type x struct { *y; d int }; type y struct { b, c int }; func (a) f() {}; func (*x) g() {}; func (*y) h() {}",
		"embedded again":        "type a struct { x; *y }; type x struct { b, c int }; type y struct { *x; d int }; func (a) f() {}; func (y) g() {}; func (y) h() {}",
		"struct without a name": "type a struct { b int; c struct { c, d, e int } }; func (a) f() {}; func (*a) g() {}; func (a) h() {}",
		"functions":             "import \"context\"; type a struct { b, c, d, e int }; func f(*a, int) {}; func g(context.Context, a) {}; func h[T any](x *a, y T) {}",
		"functions of aliases":  "type a struct { b, c, d, e int }; type x = a; type y *a; func f(x) {}; func g(*x) {}; func h(y) {}",
		"functions of embedded": "type a struct { *x; e int }; type x struct { y; d int }; type y struct { b, c int }; func f(*a) {}; func g(x) {}; func h(*y) {}",
		"methods of a wrapper":  "type a struct { b, c, d, e int }; func (a) f() {}; type x struct { *a }; func (x) g() {}; func (*x) h() {}",
		"wrapper by a field":    "type a struct { x *x }; type x struct { b, c, d, e int }; func (a) f() {}; func (x) g() {}; func (*x) h() {}",
		"wrapped by a field":    "type a struct { b, c, d, e int }; type x struct { a a }; func f(a) {}; func g(*x) {}; func (*x) h() {}",
		"wrapper of a wrapper":  "type a struct { b, c, d, e int }; type x struct { *a }; type y struct { x x }; func (a) f() {}; func g(x) {}; func (*y) h() {}",
		"defined anew":          "type a x; type x struct { b, c, d, e int }; func (a) f() {}; func g(a) {}; func h(*a) {}",
		"generic":               "type a[T any] struct { b, c, d, e T }; func (a[T]) f() {}; func g[T any](*a[T]) {}; func h(a[int]) {}",
		"type in another file":  "type a struct { x; e int }; func (a) f() {}\n-- p/b.go --\ntype x struct { b, c, d int }; func (x) g() {}; func h(*a) {}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := sizeOf(t, "-- p/a.go --\n"+text)
			require.Equal(t, fields, m.fields["p.a"], "fields")
			require.Equal(t, operations, m.operations["p.a"], "operations")
		})
	}
}

// A wrapper has the operations of what it wraps too, and an interface those of its own.
func TestSizeOfWrappersAndInterfaces(t *testing.T) {
	t.Parallel()
	m := sizeOf(t, `-- p/a.go --
type a struct { b, c int }
func (a) f() {}
func g(a) {}
type embeds struct { *a }
func h(embeds) {}
type holds struct { of *a }
func (holds) i() {}
type more struct { of *a; d int }
type face interface { j(); k() }
func l(face) {}
`)
	require.Equal(t, map[string]int{"p.a": 2, "p.embeds": 2, "p.holds": 2, "p.more": 2, "p.face": 0}, m.fields)
	require.Equal(t, map[string]int{"p.a": 4, "p.embeds": 3, "p.holds": 3, "p.more": 0, "p.face": 3}, m.operations)
}

// Splitting a file of a knot leaves all of its lines in it, and so does merging its files.
func TestKnotsStayWhenFilesAreMoved(t *testing.T) {
	t.Parallel()
	body := func(name, calls string) string {
		return "func " + name + "() {\n\t" + calls + "()\n" + strings.Repeat("\tprintln()\n", 297) + "}\n"
	}
	for name, c := range map[string]struct {
		text  string
		lines int
		knot  []string
	}{
		"two files":        {"-- p/a.go --\n" + body("a", "b") + "-- p/b.go --\n" + body("b", "a"), 602, []string{"p/a.go", "p/b.go"}},
		"through a third":  {"-- p/a.go --\n" + body("a", "b") + "-- p/b.go --\n" + body("b", "c") + "-- p/c.go --\nfunc c() { a() }", 604, []string{"p/a.go", "p/b.go", "p/c.go"}},
		"split":            {"-- p/a.go --\n" + body("a", "b") + "-- p/b.go --\n" + strings.Replace(body("b", "a"), "println()\n}", "println()\nb2()}\n-- p/b2.go --\nfunc b2() { b() }", 1), 604, []string{"p/a.go", "p/b.go", "p/b2.go"}},
		"by methods":       {"-- p/a.go --\ntype t struct{}\n" + body("(t) a", "t{}.b") + "-- p/b.go --\n" + body("(t) b", "t{}.a"), 603, []string{"p/a.go", "p/b.go"}},
		"by a field":       {"-- p/a.go --\ntype t struct{ n int }\n" + body("a", "b") + "-- p/b.go --\nfunc b() { println(t{}.n) }", 304, []string{"p/a.go", "p/b.go"}},
		"merged":           {"-- p/a.go --\n" + body("a", "b") + body("b", "a"), 601, []string{"p/a.go"}},
		"one way":          {"-- p/a.go --\n" + body("a", "b") + "-- p/b.go --\n" + body("b", "println"), 0, nil},
		"the larger knot":  {"-- p/a.go --\nfunc a() { b() }\n-- p/b.go --\nfunc b() { a() }\n-- p/c.go --\n" + body("c", "d") + "-- p/d.go --\nfunc d() { c() }", 303, []string{"p/c.go", "p/d.go"}},
		"comments, blanks": {"-- p/a.go --\n// one\nfunc a() { b() }\n\n-- p/b.go --\n/* two\n */\nfunc b() { a() }", 4, []string{"p/a.go", "p/b.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sizeOf(t, c.text).packages["p"]
			require.Equal(t, c.knot, p.knot)
			require.Equal(t, c.lines, p.knotLines)
		})
	}
}

func TestSizeOfFunctionsAndCode(t *testing.T) {
	t.Parallel()
	m := sizeOf(t, "-- p/a.go --\nfunc f() {\n\n// c\n}\ntype T struct{}\nfunc (*T) g() {}\nvar v = func() {\n_ = func() {}\n}\nvar w = `a\nb`\n")
	require.Equal(t, map[string]int{"p.f": 4, "p.T.g": 1, "p.a.go, line 8": 3}, m.functions)
	p := m.packages["p"]
	require.Equal(t, 10, p.lines)
	require.Equal(t, 2+6+5+10+15+4, p.tokens)
}

// What an alias exports of an internal type is a part of the public surface, and a command has none.
func TestSizeOfThePublicSurface(t *testing.T) {
	t.Parallel()
	m := sizeOf(t, `-- internal/q/a.go --
type T struct { A, b int }
func (T) C() {}
func (T) d() {}
-- p/a.go --
import "m/internal/q"
type T = q.T
const E, f = 1, 2
type U interface { G(); h() }
type v struct { I int }
-- cmd/main/a.go --
func J() {}
func main() {}
-- examples/e/a.go --
func K() {}
`)
	require.Equal(t, 2+1+1+2+1, m.packages["p"].exported)
	require.Zero(t, m.packages["internal/q"].exported+m.packages["cmd/main"].exported)
	require.NotContains(t, m.packages, "examples/e")
}
