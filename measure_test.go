package runteam_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os/exec"
	"path"
	"runtime/debug"
	"slices"
	"strings"
)

// The limits behind the lists of docs/size.md.
const (
	mostFields     = 30  // of a struct
	mostOperations = 40  // of a type
	mostFunction   = 60  // lines of a function
	mostKnot       = 25  // per cent of a package's code
	leastKnotted   = 800 // code lines of a package whose knot is measured
	mostFile       = 450 // code lines of a file; a larger one counts as a knot
)

// A packageSize is what one package weighs.
type packageSize struct {
	files, lines, tokens, exported int

	knot      []string // the files that all need each other, of the largest such set
	knotLines int
}

func (p packageSize) knotShare() int { return 100 * p.knotLines / max(1, p.lines) }

// A measurement is the size of a module. The names of types and functions are those of packages, such as
// internal/engine.attempt.
type measurement struct {
	packages                      map[string]packageSize
	fields, operations, functions map[string]int // all, not only the large ones
}

// A measurer type-checks the packages of a source tree, each once and after those that it imports.
type measurer struct {
	*sourceTree
	module  string
	outside types.Importer // for packages of other modules
	checked map[string]*types.Package
	found   measurement
}

// measure returns the size of the packages of a tree that a build of this system has, without examples.
func measure(tree *sourceTree, module string, outside types.Importer) (measurement, error) {
	m := measurer{tree, module, outside, map[string]*types.Package{}, measurement{map[string]packageSize{}, map[string]int{}, map[string]int{}, map[string]int{}}}
	for _, pkg := range slices.Sorted(maps.Keys(tree.files)) {
		if strings.HasPrefix(pkg, "examples") {
			continue
		}
		if _, err := m.check(pkg); err != nil {
			return m.found, err
		}
	}
	return m.found, nil
}

// Import returns a package that one of the tree imports.
func (m *measurer) Import(path string) (*types.Package, error) {
	if path == m.module {
		return m.check(".")
	}
	if pkg, ok := strings.CutPrefix(path, m.module+"/"); ok {
		return m.check(pkg)
	}
	return m.outside.Import(path)
}

// check type-checks a package and measures it.
func (m *measurer) check(pkg string) (*types.Package, error) {
	if p := m.checked[pkg]; p != nil {
		return p, nil
	}
	names, files, err := m.built(pkg)
	if err != nil {
		return nil, err
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	p, err := (&types.Config{Importer: m}).Check(path.Join(m.module, pkg), m.fset, files, info)
	if err != nil {
		return nil, err
	}
	m.checked[pkg] = p
	size, lines := packageSize{files: len(files)}, map[string]int{}
	for i, name := range names {
		n, tokens := countCode(m.text[name])
		size.lines, size.tokens, lines[name] = size.lines+n, size.tokens+tokens, n
		m.measureFunctions(pkg, files[i])
	}
	m.measureTypes(pkg, p)
	if p.Name() != "main" && !strings.Contains("/"+pkg+"/", "/internal/") {
		size.exported = countExported(p, m.module)
	}
	size.knot, size.knotLines = largestKnot(lines, fileNeeds(m.fset, p, info))
	m.found.packages[pkg] = size
	return p, nil
}

// built returns the files of a package that a build of this system has.
func (m *measurer) built(pkg string) (names []string, files []*ast.File, err error) {
	system := build.Default
	system.OpenFile = func(name string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m.text[name])), nil }
	for _, name := range slices.Sorted(maps.Keys(m.files[pkg])) {
		ok, err := system.MatchFile(path.Split(name))
		if err != nil {
			return nil, nil, err
		}
		if ok {
			names, files = append(names, name), append(files, m.files[pkg][name])
		}
	}
	return names, files, nil
}

// measureFunctions counts the lines of the functions of a file, and of those that a variable holds.
func (m *measurer) measureFunctions(pkg string, file *ast.File) {
	count := func(name string, n ast.Node) {
		m.found.functions[pkg+"."+name] = m.fset.Position(n.End()).Line - m.fset.Position(n.Pos()).Line + 1
	}
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			name := fn.Name.Name
			if fn.Recv != nil {
				name = strings.TrimLeft(types.ExprString(fn.Recv.List[0].Type), "*") + "." + name
			}
			count(name, fn)
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if fn, ok := n.(*ast.FuncLit); ok {
				count(fmt.Sprintf("%s, line %d", path.Base(m.fset.Position(fn.Pos()).Filename), m.fset.Position(fn.Pos()).Line), fn)
				return false
			}
			return true
		})
	}
}

func (m *measurer) measureTypes(pkg string, p *types.Package) {
	first, wrappers := firstParameters(p), wrappersOf(p)
	for _, name := range p.Scope().Names() {
		tn, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok || tn.IsAlias() {
			continue
		}
		if t, ok := tn.Type().(*types.Named); ok {
			m.found.fields[pkg+"."+name] = countFields(t, map[*types.TypeName]bool{})
			m.found.operations[pkg+"."+name] = countOperations(t, first, map[*types.TypeName]bool{}) + countWrapping(tn, first, wrappers)
		}
	}
}

// firstParameters returns how many functions of a package take each of its types, or a pointer to it,
// first. A context before it does not count.
func firstParameters(p *types.Package) map[*types.TypeName]int {
	first := map[*types.TypeName]int{}
	for _, name := range p.Scope().Names() {
		fn, ok := p.Scope().Lookup(name).(*types.Func)
		if !ok {
			continue
		}
		params := fn.Signature().Params()
		for v := range params.Variables() {
			of := v.Type()
			if of.String() == "context.Context" {
				continue
			}
			if t := namedType(of); t != nil && t.Obj().Pkg() == p {
				first[t.Obj()]++
			}
			break
		}
	}
	return first
}

// wrappersOf returns the types of a package that only wrap another, by the type that they wrap.
func wrappersOf(p *types.Package) map[*types.TypeName][]*types.Named {
	wrappers := map[*types.TypeName][]*types.Named{}
	for _, name := range p.Scope().Names() {
		if tn, ok := p.Scope().Lookup(name).(*types.TypeName); ok && !tn.IsAlias() {
			if t, ok := tn.Type().(*types.Named); ok {
				if of, _ := wrapped(t); of != nil {
					wrappers[of.Obj()] = append(wrappers[of.Obj()], t)
				}
			}
		}
	}
	return wrappers
}

// wrapped returns the struct of the same package that is the only field of a struct, and whether it is
// embedded.
func wrapped(t *types.Named) (of *types.Named, embedded bool) {
	s, ok := t.Underlying().(*types.Struct)
	if !ok || s.NumFields() != 1 {
		return nil, false
	}
	of = namedType(s.Field(0).Type())
	if of == nil || of.Obj().Pkg() != t.Obj().Pkg() {
		return nil, false
	}
	if _, ok := of.Underlying().(*types.Struct); !ok {
		return nil, false
	}
	return of, s.Field(0).Embedded()
}

// namedType returns the type that a type or a pointer to it names, or nil.
func namedType(t types.Type) *types.Named {
	t = types.Unalias(t)
	if n, ok := t.(*types.Named); ok {
		if _, ok := n.Underlying().(*types.Pointer); ok {
			t = n.Underlying()
		}
	}
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	n, _ := t.(*types.Named)
	return n
}

// countFields counts the fields of a struct with those of structs that it embeds, wraps or has written
// out in it.
func countFields(t types.Type, seen map[*types.TypeName]bool) (n int) {
	of := namedType(t)
	if of != nil {
		if seen[of.Obj()] {
			return 0
		}
		seen[of.Obj()], t = true, of
		if inner, _ := wrapped(of); inner != nil {
			return countFields(inner, seen)
		}
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return 0
	}
	for f := range s.Fields() {
		inside := 0
		if _, ok := f.Type().(*types.Struct); ok || f.Embedded() {
			inside = countFields(f.Type(), seen)
		}
		n += max(1, inside)
	}
	return n
}

// countOperations counts what can be called on a type: its methods with the promoted ones, and the
// functions of its package that take it, or a struct that it embeds or wraps, first.
func countOperations(t *types.Named, first map[*types.TypeName]int, seen map[*types.TypeName]bool) int {
	n := types.NewMethodSet(types.NewPointer(t)).Len()
	if types.IsInterface(t) {
		n = types.NewMethodSet(t).Len()
	}
	if inner, embedded := wrapped(t); inner != nil && !embedded {
		return n + first[t.Obj()] + countOperations(inner, first, seen)
	}
	return n + countTaking(t, first, seen)
}

// countTaking counts the functions that take a type, or a struct that it embeds, first.
func countTaking(t *types.Named, first map[*types.TypeName]int, seen map[*types.TypeName]bool) int {
	if seen[t.Obj()] {
		return 0
	}
	seen[t.Obj()] = true
	n := first[t.Obj()]
	if s, ok := t.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if f.Embedded() {
				if of := namedType(f.Type()); of != nil {
					n += countTaking(of, first, seen)
				}
			}
		}
	}
	return n
}

// countWrapping counts the operations that the types that only wrap a type add to it.
func countWrapping(t *types.TypeName, first map[*types.TypeName]int, wrappers map[*types.TypeName][]*types.Named) (n int) {
	for _, w := range wrappers[t] {
		n += w.NumMethods() + first[w.Obj()] + countWrapping(w.Obj(), first, wrappers)
	}
	return n
}

// countExported counts the exported names of a package: those of its scope, and the exported fields and
// methods of its types, also of aliases of internal ones.
func countExported(p *types.Package, module string) (n int) {
	for _, name := range p.Scope().Names() {
		if !ast.IsExported(name) {
			continue
		}
		n++
		tn, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		of := namedType(tn.Type())
		if of == nil || of.Obj().Pkg() == nil || tn.IsAlias() && !strings.HasPrefix(of.Obj().Pkg().Path(), module+"/internal/") {
			continue
		}
		for m := range of.Methods() {
			if m.Exported() {
				n++
			}
		}
		switch u := of.Underlying().(type) {
		case *types.Struct:
			for f := range u.Fields() {
				if f.Exported() {
					n++
				}
			}
		case *types.Interface:
			n += u.NumExplicitMethods()
		}
	}
	return n
}

// fileNeeds returns which files of a package use names, fields or methods that other files of it declare.
func fileNeeds(fset *token.FileSet, p *types.Package, info *types.Info) map[string]map[string]bool {
	needs := map[string]map[string]bool{}
	for id, obj := range info.Uses {
		if obj.Pkg() != p || !obj.Pos().IsValid() {
			continue
		}
		switch o := obj.(type) {
		case *types.Func:
			obj = o.Origin()
		case *types.Var:
			if !o.IsField() && o.Parent() != p.Scope() {
				continue
			}
			obj = o.Origin()
		default:
			if o.Parent() != p.Scope() {
				continue
			}
		}
		from, to := fset.File(id.Pos()).Name(), fset.File(obj.Pos()).Name()
		if from == to {
			continue
		}
		if needs[from] == nil {
			needs[from] = map[string]bool{}
		}
		needs[from][to] = true
	}
	return needs
}

// largestKnot returns the files of the largest set in which each needs each other one, at once or through
// others, and their code lines. A file that is too large is a knot too, so that merging files does not
// untie one.
func largestKnot(lines map[string]int, needs map[string]map[string]bool) (knot []string, most int) {
	index, low, waits := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(string)
	visit = func(file string) { // Tarjan's algorithm
		index[file] = len(index) + 1
		low[file] = index[file]
		stack, waits[file] = append(stack, file), true
		for to := range needs[file] {
			if index[to] == 0 {
				visit(to)
				low[file] = min(low[file], low[to])
			} else if waits[to] {
				low[file] = min(low[file], index[to])
			}
		}
		if low[file] != index[file] {
			return
		}
		at, sum := slices.Index(stack, file), 0
		for _, f := range stack[at:] {
			sum, waits[f] = sum+lines[f], false
		}
		if set := stack[at:]; sum > most && (len(set) > 1 || sum > mostFile) {
			knot, most = slices.Sorted(slices.Values(set)), sum
		}
		stack = stack[:at]
	}
	for _, file := range slices.Sorted(maps.Keys(lines)) {
		if index[file] == 0 {
			visit(file)
		}
	}
	return knot, most
}

// countCode counts the lines of a Go file that hold a token other than a comment, and the tokens.
func countCode(text []byte) (lines, tokens int) {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for last := 0; ; {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return lines, tokens
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		tokens++
		line := file.Line(pos)
		end := line + strings.Count(lit, "\n")
		lines += end - max(last, line-1)
		last = end
	}
}

// exportData returns files with the export data of the packages outside of the module that a tree
// imports, by import path. Their compiled forms are in the build cache, if `go list` has the flags that
// this test was built with.
func exportData(tree *sourceTree, module string) (map[string]string, error) {
	paths := map[string]bool{}
	for _, files := range tree.files {
		for _, file := range files {
			for _, to := range importsOf(file) {
				if to != "unsafe" && to != module && !strings.HasPrefix(to, module+"/") {
					paths[to] = true
				}
			}
		}
	}
	args := []string{"list", "-export", "-f", "{{.ImportPath}}={{.Export}}"}
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if slices.Contains([]string{"-asmflags", "-gcflags", "-tags", "-trimpath"}, s.Key) {
			args = append(args, s.Key+"="+s.Value)
		}
	}
	out, err := exec.Command("go", append(args, slices.Sorted(maps.Keys(paths))...)...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go list: %w: %s", err, exit.Stderr)
	} else if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[path] = file
	}
	return exports, nil
}
