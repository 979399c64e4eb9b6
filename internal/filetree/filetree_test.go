package filetree_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/filetree"
)

// tree returns a tree of pairs of a path and a text; the text "-" is a removed file.
func tree(pairs ...string) filetree.Tree {
	t := filetree.Tree{}
	for i := 0; i < len(pairs); i += 2 {
		if t[pairs[i]] = &pairs[i+1]; pairs[i+1] == "-" {
			t[pairs[i]] = nil
		}
	}
	return t
}

func TestReadLeavesOutWhatIsNoText(t *testing.T) {
	t.Parallel()
	m := fstest.MapFS{
		"a.go": {Data: []byte("a")}, "empty": {Data: nil}, "dir/b.go": {Data: []byte("b")}, "dir/dist/x.js": {Data: []byte("x")},
		".git/HEAD": {Data: []byte("ref")}, "sub/.runteam/journal.db": {Data: []byte("j")},
		"logo.png": {Data: []byte("\x89PNG\x00\x01")}, "latin1.txt": {Data: []byte("caf\xe9")}, "late.bin": {Data: append([]byte(strings.Repeat("a", 600)), 0xff)},
		"link": {Data: []byte("a.go"), Mode: os.ModeSymlink},
	}
	f, err := filetree.ReadFolder(m, "dist", "*.min.js")
	require.NoError(t, err)
	require.Equal(t, tree("a.go", "a", "dir/b.go", "b", "empty", ""), filetree.TreeOf(f))
	require.Equal(t, []string{"late.bin", "latin1.txt", "link", "logo.png"}, f.Skipped())
	_, err = filetree.ReadFolder(m, "[")
	require.ErrorContains(t, err, "not a valid glob")
}

func TestReadLeavesOutOtherSpellings(t *testing.T) {
	t.Parallel()
	m := fstest.MapFS{"Cafe\u0301.txt": {}, "sub/.ENV": {}, "a.Go": {}, ".Git/HEAD": {}, "Z": {}, "kept": {}}
	f, err := filetree.ReadFolder(m, "caf\u00e9.*", ".env", "*.go", "[^a-z]")
	require.NoError(t, err)
	require.Equal(t, tree("kept", ""), filetree.TreeOf(f))
}

func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	many, long := filetree.Tree{}, filetree.Tree{}
	for i := range 500 {
		many[strconv.Itoa(1000+i)] = new("x")
		long[strings.Repeat("long/", 100)+strconv.Itoa(1000+i)] = new("x")
	}
	require.Equal(t, "and 100 other files", lastLine(many.List("repo")))
	require.Less(t, len(long.List("repo")), 33<<10)
	require.Regexp(t, `^and 4\d\d other files$`, lastLine(long.List("repo")))
}

func lastLine(text string) string { return text[strings.LastIndex(text, "\n")+1:] }

func TestReadRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	half := []byte(strings.Repeat("a", filetree.MaxBytes/2+1))
	_, err := filetree.ReadFolder(fstest.MapFS{"a": {Data: half}, "b": {Data: half}})
	var large *filetree.TooLargeError
	require.ErrorAs(t, err, &large)
	_, err = filetree.ReadFolder(fstest.MapFS{"a": {Data: half}, "b.png": {Data: append([]byte{0}, half...)}})
	require.NoError(t, err, "a file that is left out does not count")
	many := fstest.MapFS{}
	for i := range filetree.MaxFiles + 1 {
		many[strconv.Itoa(i)] = &fstest.MapFile{}
	}
	_, err = filetree.ReadFolder(many)
	require.ErrorAs(t, err, &large)
}

func TestTreesAsJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := draw(t, "file")
		got, err := filetree.Parse(want.JSON())
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
	for _, bad := range []string{``, `[]`, `"a"`, `{"a": 1}`, `{"a": {"..": "x"}}`, `{"": "x"}`, `{"a/b": "x"}`, `{"a": {"/": "x"}}`, `{"a\u0000": "x"}`, `{".": "x"}`, `{"a\nb": "x"}`} {
		_, err := filetree.Parse(bad)
		require.ErrorIs(t, err, filetree.ErrInvalid, bad)
	}
}

// draw draws the files of a folder, as a tree without folders and files of one name.
func draw(t *rapid.T, label string) filetree.Tree {
	paths := []string{"a", "b.go", "dir/a", "dir/deep/er", "sp ace/ü"}
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"one\n", "two\n", "three\n", "ann@x.org\n", "\n", "last"}), 0, 12)
	out := filetree.Tree{}
	for _, path := range paths {
		switch rapid.IntRange(0, 3).Draw(t, label+path) {
		case 0:
		case 1:
			out[path] = nil
		default:
			out[path] = new(strings.Join(lines.Draw(t, "lines"), ""))
		}
	}
	return out
}

func TestNewestVersions(t *testing.T) {
	t.Parallel()
	follows := func(v, other rune) bool {
		return strings.ContainsRune(map[rune]string{'b': "a", 'c': "ab", 'x': "y", 'y': "x"}[v], other)
	}
	for _, tt := range [][2]string{{"", ""}, {"a", "a"}, {"abc", "c"}, {"cba", "c"}, {"bd", "bd"}, {"xy", "xy"}, {"xyd", "d"}} {
		require.Equal(t, tt[1], string(filetree.Newest([]rune(tt[0]), follows)), tt[0])
	}
}
