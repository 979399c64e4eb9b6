package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownPaths are the files that may look up a path from the working directory of the process: they have
// absolute paths, or paths that workdir.Dir has resolved.
var ownPaths = []string{
	"clitest/clitest.go", "files/output.go", "journals/open.go", "main.go", "serve/access.go", "serve/link.go", "serve/specpolicy.go", "serve/token.go", "serve/tokenlock_unix.go", "source/trust.go",
}

// Paths of users start from the working directory of the console, so that a run is resumed in its own
// folder and that tests share a process.
func TestPathsStartFromTheWorkingDirectoryOfTheConsole(t *testing.T) {
	t.Parallel()
	resolving := map[string][]string{
		"os": {
			"Chdir", "Chmod", "Create", "DirFS", "Getwd", "Link", "Lstat", "Mkdir", "MkdirAll", "Open", "OpenFile", "OpenInRoot", "OpenRoot",
			"ReadDir", "ReadFile", "Readlink", "Remove", "RemoveAll", "Rename", "Stat", "Symlink", "Truncate", "WriteFile",
		},
		"filepath": {"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"},
	}
	seen := map[string]bool{}
	for _, folder := range []string{".", "../specfile"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if pkg, ok := s.X.(*ast.Ident); ok && slices.Contains(resolving[pkg.Name], s.Sel.Name) {
						seen[path] = true
						require.Contains(t, ownPaths, filepath.ToSlash(path), "%s.%s: open the path with con.WorkDir", pkg.Name, s.Sel.Name)
					}
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	require.Len(t, seen, len(ownPaths), "a file in ownPaths looks up no path")
}
