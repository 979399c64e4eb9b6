package runteam_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite api/runteam.txt, and lower figures of docs/size.md and docs/costs.md")

const apiFile = "api/runteam.txt"

// TestAPI compares the exported symbols of the public packages with api/runteam.txt, so
// that each change of the public API is visible in a review.
func TestAPI(t *testing.T) {
	t.Parallel()
	got := strings.Join(apiOf(sources(t)), "\n") + "\n"
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(apiFile), 0o755))
		require.NoError(t, os.WriteFile(apiFile, []byte(got), 0o644))
		return
	}
	text, err := os.ReadFile(apiFile)
	require.NoError(t, err)
	want := string(text)
	if got == want {
		return
	}
	gone, added := missing(want, got), missing(got, want)
	t.Fatalf("the public API differs from %s.\nRemoved:\n%s\nAdded:\n%s\nIf this is intended, run \"go test . -run TestAPI -update\" and commit the file.", apiFile, gone, added)
}

// missing returns the lines of a text that another text does not have.
func missing(of, in string) string {
	known := map[string]bool{}
	for line := range strings.Lines(in) {
		known[line] = true
	}
	var b strings.Builder
	for line := range strings.Lines(of) {
		if !known[line] {
			b.WriteString("  " + line)
		}
	}
	return b.String()
}

// opaque are the types of internal packages that exported signatures may name, and why.
// Programs pass values of these types on and cannot use them otherwise.
var opaque = map[string]string{
	"filetree.Folder":     "read by ReadFolder, for an Input",
	"event.Event":         "what package team makes an event from",
	"gate.Decision":       "what a receipt says about one piece of context",
	"brief.Brief":         "what the engine builds a prompt from",
	"brief.Turn":          "what the engine builds a later turn of a prompt from",
	"condition.Condition": "a condition, which the functions of package task make",
	"jsonvalue.Value":     "JSON that was checked once and cannot be built otherwise",
	"record.Store":        "what a team calls of a journal; programs pass journals on",
	"record.Opening":      "of the methods of a journal that only a team calls",
	"record.Log":          "of the methods of a journal that only a team calls",
	"record.StoredTurn":   "of the methods of a journal that only a team calls",
	"record.History":      "of the methods of a journal that only a team calls",
	"journal.Options":     "of the method by which package journal/postgres opens a journal",
	"journal.Journal":     "of the method by which package journal/postgres opens a journal",
	"engine.Team":         "what a team.Team is; package spec converts the team of a file into one",
	"mailbox.Bus":         "what the engine delivers messages with; programs pass buses on",

	"provenance.Position": "of values that spec files and plans make; programs pass them on",
	"provenance.Source":   "of values that spec files and plans make; programs pass them on",

	// Aliases: the names are public, and the engine uses the same types.
	"codes.Condition":     "agent.Condition",
	"planning.Rules":      "synth.Rules",
	"planning.Grants":     "a field of synth.Rules",
	"planning.Constructs": "a field of synth.Rules",
	"teammemory.Entry":    "sharedmem.Entry",
}

// TestPublicSignaturesNameNoInternalType keeps types that a program cannot name or look up
// out of the public API.
func TestPublicSignaturesNameNoInternalType(t *testing.T) {
	t.Parallel()
	all, used := sources(t), map[string]bool{}
	for _, pkg := range publicPackages(all) {
		for name, file := range all[pkg] {
			inside := internalImports(file)
			for _, s := range symbols(pkg, file) {
				ast.Inspect(s.node, func(n ast.Node) bool {
					sel, ok := n.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					x, ok := sel.X.(*ast.Ident)
					if !ok || inside[x.Name] == "" {
						return true
					}
					of := x.Name + "." + sel.Sel.Name
					if used[of] = true; opaque[of] == "" {
						t.Errorf("%s: %q names %s, an internal type; declare a public type and convert, or list it as opaque with a reason", name, s.line, of)
					}
					return true
				})
			}
		}
	}
	for of := range opaque {
		if !used[of] {
			t.Errorf("%s is listed as opaque, and no exported signature names it: remove it", of)
		}
	}
}

// internalImports returns the internal packages of this module that a file imports, by
// the names that it knows them by.
func internalImports(file *ast.File) map[string]string {
	found := map[string]string{}
	for _, spec := range file.Imports {
		to, _ := strconv.Unquote(spec.Path.Value)
		if !strings.HasPrefix(to, module+"/") || !strings.Contains(to, "/internal/") {
			continue
		}
		name := to[strings.LastIndex(to, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		found[name] = to
	}
	return found
}

// publicPackages returns the packages that a program outside of this module may import.
func publicPackages(all map[string]map[string]*ast.File) (list []string) {
	for pkg, files := range all {
		public := !strings.Contains("/"+pkg+"/", "/internal/") && !strings.HasPrefix(pkg, "examples")
		for _, file := range files {
			public = public && file.Name.Name != "main"
		}
		if public {
			list = append(list, pkg)
		}
	}
	slices.Sort(list)
	return list
}

// apiOf returns one line for each exported symbol of the public packages, in order.
func apiOf(all map[string]map[string]*ast.File) (lines []string) {
	for _, pkg := range publicPackages(all) {
		var own []string
		for _, file := range all[pkg] {
			for _, s := range symbols(pkg, file) {
				own = append(own, s.line)
			}
		}
		slices.Sort(own)
		lines = append(lines, own...)
	}
	return lines
}

// A symbol is one exported name, with the part of the syntax tree that says its type.
type symbol struct {
	line string
	node ast.Node
}

// symbols returns the exported symbols of a file.
func symbols(pkg string, file *ast.File) (list []symbol) {
	add := func(node ast.Node, format string, args ...any) {
		list = append(list, symbol{"pkg " + pkg + ", " + fmt.Sprintf(format, args...), node})
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			switch {
			case !decl.Name.IsExported():
			case decl.Recv == nil:
				add(decl.Type, "func %s%s", decl.Name.Name, signature(decl.Type))
			case ast.IsExported(strings.TrimLeft(typeText(decl.Recv.List[0].Type), "*")):
				add(decl.Type, "method (%s) %s%s", typeText(decl.Recv.List[0].Type), decl.Name.Name, signature(decl.Type))
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						if name.IsExported() {
							add(&ast.ValueSpec{Names: []*ast.Ident{name}, Type: spec.Type}, "%s %s%s", decl.Tok, name.Name, spaced(spec.Type))
						}
					}
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						addType(spec, add)
					}
				}
			}
		}
	}
	return list
}

// addType adds the lines of a type: of the type itself, its exported fields or its methods.
func addType(spec *ast.TypeSpec, add func(node ast.Node, format string, args ...any)) {
	name := spec.Name.Name
	switch of := spec.Type.(type) {
	case *ast.StructType:
		add(spec.Name, "type %s struct", name)
		for _, field := range of.Fields.List {
			if len(field.Names) == 0 && ast.IsExported(strings.TrimLeft(typeText(field.Type), "*")) {
				add(field.Type, "type %s struct, embedded %s", name, typeText(field.Type))
			}
			for _, fieldName := range field.Names {
				if fieldName.IsExported() {
					add(field.Type, "type %s struct, %s %s", name, fieldName.Name, typeText(field.Type))
				}
			}
		}
	case *ast.InterfaceType:
		add(spec.Name, "type %s interface", name)
		for _, m := range of.Methods.List {
			if f, ok := m.Type.(*ast.FuncType); ok {
				add(f, "type %s interface, %s%s", name, m.Names[0].Name, signature(f))
			} else {
				add(m.Type, "type %s interface, embedded %s", name, typeText(m.Type))
			}
		}
	default:
		sign := " "
		if spec.Assign.IsValid() {
			sign = " = "
		}
		add(spec.Type, "type %s%s%s", name, sign, typeText(spec.Type))
	}
}

// signature returns the types of a function, without the names of its parameters.
func signature(f *ast.FuncType) string {
	return strings.TrimPrefix(typeText(&ast.FuncType{TypeParams: f.TypeParams, Params: unnamed(f.Params), Results: unnamed(f.Results)}), "func")
}

func unnamed(list *ast.FieldList) *ast.FieldList {
	if list == nil {
		return nil
	}
	out := &ast.FieldList{}
	for _, field := range list.List {
		for range max(1, len(field.Names)) {
			out.List = append(out.List, &ast.Field{Type: field.Type})
		}
	}
	return out
}

// spaced returns a type behind a space, or nothing.
func spaced(of ast.Expr) string {
	if of == nil {
		return ""
	}
	return " " + typeText(of)
}

// typeText writes a type on one line.
func typeText(of ast.Node) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), of); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
