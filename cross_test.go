package runteam_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTypesFitOnOtherSystems type-checks all packages for the systems that tests do not run on.
// It reads the bodies of functions of this module only. A build for these systems would find
// little more, and would compile the standard library and SQLite for each.
func TestTypesFitOnOtherSystems(t *testing.T) {
	t.Parallel()
	if os.Getenv("RUNTEAM_CROSS") != "1" {
		t.Skip("make cross runs it")
	}
	for _, system := range []string{"windows/amd64", "darwin/arm64"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			goos, goarch, _ := strings.Cut(system, "/")
			s := systemTypes{fset: token.NewFileSet(), goarch: goarch, checked: map[string]*types.Package{"unsafe": types.Unsafe}}
			own := 0
			for _, p := range packagesOf(t, goos, goarch) {
				require.NoError(t, s.check(&p))
				if p.isOurs() {
					own++
				}
			}
			require.Greater(t, own, 100)
		})
	}
}

// listed is a package as `go list -json` describes it.
type listed struct {
	Dir, ImportPath string
	GoFiles         []string
	ImportMap       map[string]string
}

func (p *listed) isOurs() bool {
	return p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/")
}

// packagesOf lists all packages of the module on a system and what they import, each after what it
// imports.
func packagesOf(t *testing.T, goos, goarch string) (all []listed) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,ImportPath,GoFiles,ImportMap", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	for in := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := in.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

// systemTypes are the types of the packages that were checked for one system.
type systemTypes struct {
	fset    *token.FileSet
	goarch  string
	checked map[string]*types.Package
}

// check type-checks a package, whose imports have been checked.
func (s *systemTypes) check(p *listed) error {
	if p.ImportPath == "unsafe" {
		return nil
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	config := types.Config{
		IgnoreFuncBodies: !p.isOurs(),
		Sizes:            types.SizesFor("gc", s.goarch),
		Importer: importerFunc(func(path string) (*types.Package, error) {
			if mapped, ok := p.ImportMap[path]; ok {
				path = mapped
			}
			if found := s.checked[path]; found != nil {
				return found, nil
			}
			return nil, errors.New("go list has no package " + path)
		}),
	}
	checked, err := config.Check(p.ImportPath, s.fset, files, nil)
	s.checked[p.ImportPath] = checked
	return err
}

// importerFunc is a function that finds packages.
type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
