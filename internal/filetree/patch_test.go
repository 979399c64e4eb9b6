package filetree_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/filetree"
)

// A tb is a test, or a check of drawn values.
type tb interface {
	require.TestingT
	Helper()
}

// apply applies a patch with git to a tree in a folder of its own, below root.
func apply(t tb, root, patch string, to filetree.Tree) (filetree.Tree, error) {
	t.Helper()
	dir := filepath.Join(root, "work")
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for path, text := range to {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(*text), 0o644))
	}
	if patch != "" {
		cmd := exec.Command("git", "apply", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(patch)
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+root)
		if output, err := cmd.CombinedOutput(); err != nil {
			return nil, &exec.Error{Name: string(output), Err: err}
		}
	}
	got, _, err := filetree.Read(context.Background(), os.DirFS(dir), nil)
	require.NoError(t, err)
	return got, nil
}

// requireGit skips a test if git is not installed.
func requireGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
}

var mail = regexp.MustCompile(`\w+@x\.org`)

// redacted replaces what the agent is not given, or only what the copy in a journal lacks.
func redacted(in filetree.Tree, forCopy bool) filetree.Tree {
	out := filetree.Tree{}
	for path, text := range in {
		clean := strings.ReplaceAll(*text, "BEGIN\nkey\nEND\n", "[REDACTED:key]\n")
		if !forCopy {
			clean = mail.ReplaceAllString(clean, "[REDACTED:email]")
		}
		out[path] = &clean
	}
	return out
}

// TestPatchesApply applies drawn patches with git, to a folder in which mail addresses and keys
// are not redacted. A patch that is not refused makes exactly what the task made.
func TestPatchesApply(t *testing.T) {
	t.Parallel()
	requireGit(t)
	dir := t.TempDir()
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"one\n", "two\n", "three\n", "to ann@x.org\n", "\n", "BEGIN\nkey\nEND\n", "four\n", "five\n", "six\n"}), 0, 16)
	rapid.Check(t, func(t *rapid.T) {
		original, changed := filetree.Tree{}, filetree.Tree{}
		drawn := existing(draw(t, "original"))
		for _, path := range drawn.Paths() {
			original[path] = new(strings.Join(lines.Draw(t, "lines"), "") + *drawn[path])
		}
		before, stored := redacted(original, false), redacted(original, true)
		maps.Copy(changed, redacted(existing(draw(t, "changed")), false))
		for _, path := range before.Paths() {
			text := before[path]
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				changed[path] = nil
			case 1, 2:
				all := strings.SplitAfter(*text, "\n")
				at := rapid.IntRange(0, len(all)-1).Draw(t, "line")
				all[at] = rapid.SampledFrom([]string{"", "new\n" + all[at], "x " + all[at], "new\n"}).Draw(t, "edit")
				changed[path] = new(strings.Join(all, ""))
			}
		}
		originals := map[string]*filetree.Original{}
		for path, text := range stored {
			originals[path] = &filetree.Original{Text: *text, Hidden: []string{"[REDACTED:key]"}}
		}
		patch, err := filetree.Patch(changed, before, originals)
		if err != nil {
			require.Empty(t, patch)
			require.Regexp(t, `^\S.*:\d+: .*\[REDACTED:`, err.Error())
			return
		}
		require.NotContains(t, patch, "[REDACTED:")
		got, err := apply(t, dir, patch, original)
		require.NoError(t, err, patch)
		want := filetree.Tree{}
		maps.Copy(want, before)
		for path, text := range changed {
			if want[path] = text; text == nil {
				delete(want, path)
			}
		}
		require.Equal(t, want, redacted(got, false), patch)
		for _, text := range got {
			require.NotContains(t, *text, "[REDACTED:")
		}
	})
}

// existing returns the files of a tree that are not removed.
func existing(t filetree.Tree) filetree.Tree {
	for path, text := range t {
		if text == nil {
			delete(t, path)
		}
	}
	return t
}

const (
	config = "host: a\nport: 1\nmail: ann@x.org\nuser: u\n"
	keys   = "name: a\nBEGIN\nkey\nEND\nport: 1\nmode: x\nport: 1\nmode: y\nend\n"
)

func TestChangesBesideRedactedLines(t *testing.T) {
	t.Parallel()
	requireGit(t)
	for name, tt := range map[string]struct {
		original, old, new string
		unknown            bool // the journal has no copy
		refused            string
	}{
		"line kept":                         {config, "port: 1", "port: 2", false, ""},
		"line rewritten":                    {config, "mail: [REDACTED:email]", "contact: [REDACTED:email]", false, ""},
		"line removed":                      {config, "mail: [REDACTED:email]\n", "", false, ""},
		"line copied":                       {config, "user: u", "user: [REDACTED:email]", false, "f:4: the task wrote a line with [REDACTED:email]"},
		"two texts of one kind":             {"a@x.org\nann@x.org\n", "[REDACTED:email]\n[REDACTED:email]", "1 [REDACTED:email]\n2 [REDACTED:email]", false, "f:1: the task wrote a line with [REDACTED:email]"},
		"no copy, after the line":           {config, "user: u", "user: v", true, ""},
		"no copy, before the line":          {config, "port: 1", "port: 2", true, "f:3: a change ends just before this line"},
		"no copy, line rewritten":           {config, "mail:", "contact:", true, "f:3: the task replaced a line with [REDACTED:email]"},
		"after a key of several lines":      {keys, "end", "done", false, ""},
		"twice after a key":                 {keys, "port: 1\nmode: y", "port: 1\nmode: z", false, ""},
		"before a key":                      {keys, "name: a", "name: b", false, "f:2: a change ends just before this line"},
		"key removed":                       {keys, "[REDACTED:key]\n", "", false, "f:2: the task replaced a line with [REDACTED:key]"},
		"key written over":                  {keys, "[REDACTED:key]\nport: 1\nmode: x", "[REDACTED:key] \nport: 1\nmode: x", false, "f:2: the task replaced a line with [REDACTED:key]"},
		"equal lines after a key":           {"BEGIN\nkey\nEND\na\nb\nc\nd\ne\nf\na\nb\nc\nd\ne\nf\na\nb\nc\nd\ne\nf\n", "f\na\nb\nc\nd\ne\nf\na", "f\na\nb\nc\nd!\ne\nf\na", false, "f:11: the place of the change is not certain, since [REDACTED:key] in line 1"},
		"placeholder that is the text":      {"a [REDACTED:email] b\nc\n", "c", "d", false, ""},
		"such a line is rewritten":          {"a [REDACTED:email] b\nc\n", "a [", "b [", false, ""},
		"line after the last, after a key":  {"a\nb\nBEGIN\nkey\nEND\n", "[REDACTED:key]\n", "[REDACTED:key]\nc\n", false, "f:3: a change begins just after this line"},
		"line before the first, before key": {"BEGIN\nkey\nEND\na\n", "[REDACTED:key]\n", "c\n[REDACTED:key]\n", false, "f:1: a change ends just before this line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			original := tree("f", tt.original)
			before := redacted(original, false)
			require.Contains(t, *before["f"], tt.old)
			changed := filetree.Tree{"f": new(strings.Replace(*before["f"], tt.old, tt.new, 1))}
			originals := map[string]*filetree.Original{"f": {Text: *redacted(original, true)["f"], Hidden: []string{"[REDACTED:key]"}}}
			if tt.unknown {
				originals = nil
			}
			patch, err := filetree.Patch(changed, before, originals)
			if tt.refused != "" {
				require.ErrorContains(t, err, tt.refused)
				require.Empty(t, patch)
				return
			}
			require.NoError(t, err)
			got, err := apply(t, t.TempDir(), patch, original)
			require.NoError(t, err, patch)
			require.Equal(t, changed, redacted(got, false), patch)
			require.Equal(t, strings.Count(tt.original, "[REDACTED:"), strings.Count(*got["f"], "[REDACTED:"), patch)
		})
	}
}

func TestPatchesThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		changed, before filetree.Tree
		refused         string
	}{
		"redacted name":        {tree("of [REDACTED:email]", "b"), tree("of [REDACTED:email]", "a"), "of [REDACTED:email]: the name of the file has [REDACTED:email]"},
		"new file with data":   {tree("new", "a\nmail [REDACTED:email]\n"), tree(), "new:2: the task wrote a line with [REDACTED:email]"},
		"removed unknown file": {tree("old", "-"), tree("old", "a\n[REDACTED:email]\n"), "old:2: the task replaced a line with [REDACTED:email]"},
		"two files":            {tree("a", "[REDACTED:email]", "b", "[REDACTED:email]"), tree(), "a:1: the task wrote a line with [REDACTED:email], and it is not certain which text that stands for\nb:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patch, err := filetree.Patch(tt.changed, tt.before, nil)
			require.ErrorContains(t, err, tt.refused)
			require.Empty(t, patch)
		})
	}
}
