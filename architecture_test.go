package runteam_test

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestArchitectureNamesExistingFiles checks that ARCHITECTURE.md has three walks of at most 12 steps, that each step
// begins with a function of the module, that all files that it and its second page name exist, and that it names each
// package but those of the command and of examples.
func TestArchitectureNamesExistingFiles(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	text := string(raw)
	require.LessOrEqual(t, len(strings.Fields(text)), 2500, "words")

	funcs := declaredFunctions(t)
	_, walks, _ := strings.Cut(text, "\n## Three walks\n")
	walks, _, _ = strings.Cut(walks, "\n## ")
	sections := strings.Split(walks, "\n### ")[1:]
	require.Len(t, sections, 3)
	step := regexp.MustCompile("(?m)^[0-9]+\\. `([^`]+)`")
	for _, walk := range sections {
		steps := step.FindAllStringSubmatch(walk, -1)
		require.LessOrEqual(t, len(steps), 12, walk)
		require.Len(t, regexp.MustCompile(`(?m)^[0-9]+\. `).FindAllString(walk, -1), len(steps), "each step begins with a function")
		for _, name := range steps {
			assert.Contains(t, funcs, name[1], "no such function")
		}
	}
	inside, err := os.ReadFile("docs/explanation/inside-a-run.md")
	require.NoError(t, err)
	for _, file := range regexp.MustCompile("`([a-z/_]+\\.(?:go|md|js))`").FindAllStringSubmatch(text+string(inside), -1) {
		assert.FileExists(t, file[1])
	}
	for pkg := range sources(t) {
		if !strings.HasPrefix(pkg, "internal/cli/") && !strings.HasPrefix(pkg, "examples/") && pkg != "cmd/runteam" && pkg != "." {
			assert.Contains(t, text, "`"+pkg+"`", "a package that it does not name")
		}
	}
}

// declaredFunctions returns the functions and methods of the module, such as internal/gate.Negotiate
// and team.Team.RunTasks.
func declaredFunctions(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for pkg, files := range sources(t) {
		for _, file := range files {
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if !ok {
					continue
				}
				name := f.Name.Name
				if f.Recv != nil {
					receiver := f.Recv.List[0].Type
					if pointer, ok := receiver.(*ast.StarExpr); ok {
						receiver = pointer.X
					}
					if ident, ok := receiver.(*ast.Ident); ok {
						name = ident.Name + "." + name
					}
				}
				names[pkg+"."+name] = true
			}
		}
	}
	return names
}
