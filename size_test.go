package runteam_test

import (
	"fmt"
	"go/ast"
	"testing"

	"github.com/stretchr/testify/require"
)

// The most methods of a type and fields of a struct. A type that needs more often hides a
// second one.
const (
	mostMethods = 25
	mostFields  = 20
	mostExempt  = 12
)

// exempt are the structs with more fields, and why: they are configuration or documents,
// whose keys users know from files and output.
var exempt = map[string]string{
	"task.Spec":                  "what a user writes about a task",
	"team.RunOptions":            "what a program sets for a run",
	"team.Member":                "what a program sets for an agent",
	"internal/event.Event":       "an event in JSON",
	"internal/engine.TaskResult": "a task in the JSON output of a run",
	"internal/plan.Options":      "the same, as the command sets it",
	"internal/specfile.Options":  "what flags say about a spec",
}

func TestTypesStaySmall(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, len(exempt), mostExempt)
	methods, large := map[string]int{}, map[string]bool{}
	for pkg, files := range sources(t) {
		for _, file := range files {
			for _, decl := range file.Decls {
				switch decl := decl.(type) {
				case *ast.FuncDecl:
					if decl.Recv != nil {
						methods[pkg+"."+receiverName(decl.Recv.List[0].Type)]++
					}
				case *ast.GenDecl:
					for _, spec := range decl.Specs {
						name, fields := structOf(spec)
						if name = pkg + "." + name; fields <= mostFields {
							continue
						}
						if large[name] = true; exempt[name] == "" {
							t.Errorf("%s has %d fields, more than %d: group them by subject, or find the second type in it", name, fields, mostFields)
						}
					}
				}
			}
		}
	}
	for name, n := range methods {
		if n > mostMethods {
			t.Errorf("%s has %d methods, more than %d: find the second type in it", name, n, mostMethods)
		}
	}
	for name := range exempt {
		if !large[name] {
			t.Errorf("%s is exempt and needs no exemption: remove it", name)
		}
	}
}

// structOf returns the name of a struct type and how many fields it has.
func structOf(spec ast.Spec) (name string, fields int) {
	of, ok := spec.(*ast.TypeSpec)
	if !ok {
		return "", 0
	}
	if s, ok := of.Type.(*ast.StructType); ok {
		for _, f := range s.Fields.List {
			fields += max(1, len(f.Names))
		}
	}
	return of.Name.Name, fields
}

// receiverName returns the name of the type that a receiver has.
func receiverName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiverName(of.X)
	case *ast.IndexExpr:
		return receiverName(of.X)
	case *ast.IndexListExpr:
		return receiverName(of.X)
	}
	return fmt.Sprint(of)
}
