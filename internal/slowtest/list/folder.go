package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// A folder is what the Go files of one folder say.
type folder struct {
	tested bool
	code   []*ast.File         // without tests
	uses   map[string][]string // the names in each function of the tests
}

// The names that mark a test: that it starts goroutines, and that it uses package slowtest.
const (
	goroutines = "go"
	slowTests  = "slowtest"
)

// parse reads the Go files below a folder, by their folders, such as ./internal/gate. Modules of their own are left out.
func parse(root string) (map[string]*folder, error) {
	folders := map[string]*folder{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{"foreign", "browser", "testdata", ".git"}, e.Name()):
			return fs.SkipDir
		case e.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		name := "./" + filepath.ToSlash(below)
		f := folders[name]
		if f == nil {
			f = &folder{uses: map[string][]string{}}
			folders[name] = f
		}
		if !strings.HasSuffix(path, "_test.go") {
			f.code = append(f.code, file)
			return nil
		}
		f.tested = true
		f.addTests(file)
		return nil
	})
	return folders, err
}

func (f *folder) addTests(file *ast.File) {
	for _, d := range file.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && d.Body != nil {
			f.uses[d.Name.Name] = append(f.uses[d.Name.Name], namesIn(d.Body)...)
		}
	}
}

// using returns the names of the tests that use a mark, themselves or through other functions of the tests, but not
// through methods.
func (f *folder) using(mark string) (tests []string) {
	// Where it stands in a function that runs before the tests, all properties draw fewer cases.
	marked := map[string]bool{mark: true, "rapid": slices.Contains(slices.Concat(f.uses["init"], f.uses["TestMain"]), mark)}
	for grown := true; grown; {
		grown = false
		for name, used := range f.uses {
			if !marked[name] && slices.ContainsFunc(used, func(other string) bool { return marked[other] }) {
				marked[name], grown = true, true
			}
		}
	}
	for name := range marked {
		if strings.HasPrefix(name, "Test") && name != "TestMain" {
			tests = append(tests, name)
		}
	}
	return tests
}

func startsGoroutines(code []*ast.File) bool {
	return slices.ContainsFunc(code, func(file *ast.File) bool { return slices.Contains(namesIn(file), goroutines) })
}

// namesIn returns the names below a node, without those of fields and methods, and [goroutines] for a go statement and a
// call such as of [sync.WaitGroup.Go].
func namesIn(node ast.Node) (names []string) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			names = append(names, goroutines)
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" {
				names = append(names, goroutines)
			}
		case *ast.SelectorExpr:
			names = append(names, namesIn(n.X)...)
			return false
		case *ast.Ident:
			names = append(names, n.Name)
		}
		return true
	})
	return names
}
