package runteam_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/runteam/runteam"

// arrows is which package may import which of ours. A package imports only
// packages that stand above it; a new arrow is a design decision and is made
// here, in the change that needs it.
var arrows = []struct {
	pkg     string
	imports string
}{
	{"internal/slowtest", ""}, {"internal/slowtest/list", ""}, {"internal/visits", ""},
	{"label", ""},
	{"internal/workdir", ""},
	{"internal/bytesize", ""},
	{"internal/oneline", ""},
	{"internal/yamltext", ""},
	{"internal/markdown", ""},
	{"internal/endpoint", ""},
	{"internal/callwait", ""},
	{"internal/callfault", ""},
	{"llm", "internal/oneline internal/endpoint internal/callwait internal/callfault"},
	{"internal/pricing", "llm"},
	{"internal/callinfo", "internal/oneline llm"},
	{"internal/tokencount", "llm"},
	{"internal/supervise", "llm"},
	{"internal/quota", ""},
	{"llm/limit", "internal/callfault internal/tokencount internal/callwait internal/endpoint internal/quota llm"},
	{"internal/connection", "internal/callfault internal/oneline llm"},
	{"internal/toolschema", ""},
	{"internal/textcall", ""},
	{"internal/membudget", "internal/bytesize"},
	{"llm/openai", "internal/membudget internal/callfault internal/connection internal/oneline internal/callinfo internal/toolschema llm"},
	{"internal/matcher", ""},
	{"redact", "internal/matcher"},
	{"internal/naming", ""},
	{"internal/username", ""},
	{"internal/provenance", ""},
	{"internal/dag", ""},
	{"internal/jsonvalue", ""},
	{"internal/condition", "internal/jsonvalue"},
	{"internal/listformat", "internal/jsonvalue"},
	{"task", "label internal/naming internal/dag internal/provenance internal/condition"},
	{"internal/graph", "internal/dag task"},
	{"internal/pick", "internal/naming task"},
	{"envelope", "internal/bytesize label task internal/jsonvalue"},
	{"internal/readyqueue", "task internal/graph envelope"},
	{"queue", "task internal/graph envelope internal/readyqueue"},
	{"handoff", "label task redact internal/provenance"},
	{"internal/filetree", "internal/matcher internal/pick"},
	{"internal/texttemplate", ""},
	{"internal/gate", "internal/filetree internal/bytesize internal/naming label task internal/pick envelope redact handoff internal/jsonvalue internal/provenance"},
	{"internal/brief", "internal/gate internal/naming task internal/provenance"},
	{"prompt", "internal/bytesize internal/naming label task envelope handoff redact internal/gate internal/brief internal/provenance"},
	{"internal/policytext", "handoff internal/provenance label redact task"},
	{"internal/promptview", "internal/naming label handoff internal/brief prompt"},
	{"steer", "label handoff internal/policytext"},
	{"internal/event", "handoff internal/gate label llm prompt redact task"},
	{"event", "steer handoff internal/event label llm prompt redact task"},
	{"internal/assign", "internal/naming label task internal/graph"},
	{"internal/record", "internal/policytext internal/provenance steer envelope internal/event handoff internal/gate label llm prompt task internal/promptview"},
	{"internal/audit", "internal/event internal/record"},
	{"internal/workspace", ""},
	{"internal/codes", ""},
	{"internal/runstate", "internal/naming internal/record internal/gate internal/codes internal/event llm steer task"},
	{"internal/trace", "internal/runstate internal/naming label task handoff prompt internal/event internal/audit internal/record internal/gate internal/promptview internal/brief"},
	{"internal/schema", "internal/matcher internal/condition internal/codes internal/naming internal/oneline internal/pick task internal/jsonvalue"},
	{"internal/runevents", "internal/record internal/codes internal/gate internal/event handoff label llm prompt task"},
	{"internal/journal", "internal/runevents internal/runstate internal/policytext steer internal/schema internal/workspace internal/bytesize internal/callinfo internal/naming label task envelope handoff prompt internal/event internal/audit internal/trace llm internal/record internal/gate internal/jsonvalue internal/promptview internal/workdir"},
	{"internal/journal/postgres", "internal/journal"},
	{"internal/journaltest", "internal/record"},
	{"internal/pgtest", ""},
	{"journal", "steer label task envelope llm internal/record internal/journal"},
	{"journal/postgres", "internal/journal internal/journal/postgres journal"},
	{"internal/flow", "internal/naming label task internal/pick handoff"},
	{"internal/mailbox", "internal/jsonvalue internal/bytesize internal/naming label task envelope handoff"},
	{"messagebus", "handoff envelope internal/mailbox"},
	{"internal/teammemory", "internal/naming task envelope handoff"},
	{"sharedmem", "task envelope internal/teammemory"},
	{"sharedmem/storetest", "label task envelope handoff sharedmem"},
	{"internal/scripted", "internal/yamltext internal/callfault internal/schema internal/jsonvalue internal/oneline internal/endpoint internal/callinfo llm internal/workdir"},
	{"llm/scripted", "internal/scripted llm llm/openai"},
	{"tool", "label internal/schema internal/toolschema"},
	{"internal/memo", "internal/runstate internal/record internal/codes internal/event llm steer task tool"},
	{"internal/mask", ""},
	{"internal/process", "internal/bytesize internal/mask"},
	{"tool/builtin", "internal/matcher internal/bytesize internal/membudget internal/process internal/workspace tool"},
	{"mcp", "internal/mask internal/membudget internal/oneline internal/process internal/schema internal/toolschema internal/workspace tool"},
	{"agent", "internal/mask internal/process internal/codes internal/callfault internal/supervise internal/tokencount internal/callinfo internal/endpoint internal/oneline label envelope prompt llm llm/limit internal/schema internal/jsonvalue internal/workspace internal/textcall redact"},
	{"person", "internal/codes internal/jsonvalue internal/schema llm prompt agent"},
	{"internal/planning", "internal/naming label task internal/gate internal/jsonvalue internal/brief"},
	{"synth", "task internal/planning"},
	{"internal/plan", "internal/memo internal/matcher internal/tokencount internal/listformat person internal/filetree internal/event internal/pricing internal/bytesize internal/naming internal/endpoint label redact task internal/pick envelope handoff prompt internal/record internal/assign internal/mailbox internal/teammemory agent internal/planning internal/flow llm internal/gate internal/graph internal/schema internal/jsonvalue internal/brief internal/provenance tool internal/process internal/condition internal/texttemplate"},
	{"internal/engine", "internal/runevents internal/memo internal/runstate internal/matcher internal/membudget internal/policytext person steer internal/workspace internal/filetree internal/pricing internal/callfault internal/bytesize label internal/oneline internal/callwait llm internal/callinfo internal/supervise internal/tokencount redact internal/naming task internal/graph internal/jsonvalue envelope internal/readyqueue handoff internal/gate prompt internal/event internal/assign internal/record internal/flow internal/mailbox internal/teammemory internal/schema agent internal/planning internal/codes internal/plan internal/brief internal/promptview internal/provenance tool internal/condition internal/pick internal/texttemplate"},
	{"team", "steer internal/filetree label llm internal/naming task envelope handoff prompt event internal/event internal/assign internal/flow messagebus sharedmem agent synth internal/record internal/plan internal/engine internal/provenance tool"},
	{"internal/specfile", "internal/username internal/process internal/matcher internal/policytext internal/listformat agent person tool tool/builtin mcp internal/mask internal/filetree internal/yamltext internal/pricing internal/bytesize internal/connection internal/endpoint internal/plan internal/naming label llm llm/limit redact task internal/pick envelope handoff internal/assign internal/flow internal/gate internal/engine internal/provenance internal/condition internal/workdir"},
	{"spec", "person prompt llm llm/limit llm/openai task agent team internal/specfile internal/engine internal/plan"},
	{"internal/roles", "internal/bytesize internal/naming internal/specfile internal/username internal/workdir label"},
	{"internal/inspector", "internal/event internal/naming label steer task"},
	{"inspect", "steer"},
	{"flowtest", "internal/matcher tool internal/listformat internal/condition internal/graph internal/plan llm internal/supervise internal/filetree internal/brief internal/codes internal/naming internal/specfile label task internal/pick handoff prompt internal/event agent internal/trace internal/flow spec internal/scripted internal/schema internal/jsonvalue person internal/engine"},
	{"internal/inspector/page", "label"},
}

// pure packages compute and do nothing else.
var pure = []string{"label", "internal/bytesize", "internal/naming", "internal/provenance", "task", "internal/pick", "internal/flow", "internal/jsonvalue", "internal/listformat", "internal/markdown", "envelope", "internal/readyqueue", "queue", "handoff", "internal/gate", "internal/brief", "prompt", "internal/promptview", "internal/assign", "internal/planning", "synth"}

// impure is what a pure package does not import: clocks, randomness, I/O.
// Packages time and context are allowed for their types, so that a caller can stop
// a computation; what reads the clock or makes a context is looked for by name.
var impure = []string{"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "log", "syscall", "os/exec"}

func TestPackagesImportOnlyAllowedPackages(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{}
	for i, a := range arrows {
		allowed[a.pkg] = strings.Fields(a.imports)
		for _, to := range allowed[a.pkg] {
			above := slices.ContainsFunc(arrows[:i], func(b struct{ pkg, imports string }) bool { return b.pkg == to })
			require.True(t, above, "%s may import %s, which stands below it", a.pkg, to)
		}
	}
	for pkg, files := range sources(t) {
		if strings.HasPrefix(pkg, "cmd/") || strings.HasPrefix(pkg, "internal/cli") || strings.HasPrefix(pkg, "examples") {
			continue // may import anything exported
		}
		want, known := allowed[pkg]
		if !known && pkg != "." {
			t.Errorf("package %s is not in the table", pkg)
		}
		for name, file := range files {
			for _, to := range importsOf(file) {
				ours, ok := strings.CutPrefix(to, module+"/")
				if ok && !slices.Contains(want, ours) {
					t.Errorf("%s: %s does not import %s; if it must, say so in the table", name, pkg, ours)
				}
			}
		}
	}
}

// Only the command, and programs that import journal/postgres, link the driver of PostgreSQL.
func TestOthersDoNotLinkThePostgresDriver(t *testing.T) {
	t.Parallel()
	for pkg, files := range sources(t) {
		for name, file := range files {
			for _, to := range importsOf(file) {
				if strings.HasPrefix(to, "github.com/jackc/pgx") && pkg != "internal/journal/postgres" && pkg != "internal/pgtest" {
					t.Errorf("%s imports %s", name, to)
				}
				if to == module+"/internal/journal/postgres" && pkg != "journal/postgres" && !strings.HasPrefix(pkg, "internal/cli") {
					t.Errorf("%s imports %s", name, to)
				}
			}
		}
	}
}

func TestPureCoreHasNoEffects(t *testing.T) {
	t.Parallel()
	all := sources(t)
	for _, pkg := range pure {
		require.Contains(t, all, pkg)
		for name, file := range all[pkg] {
			for _, to := range importsOf(file) {
				if slices.Contains(impure, to) {
					t.Errorf("%s imports %s", name, to)
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s starts a goroutine", name)
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "Tick", "AfterFunc"}, n.Sel.Name) {
						t.Errorf("%s reads the clock: time.%s", name, n.Sel.Name)
					}
					if x, ok := n.X.(*ast.Ident); ok && x.Name == "context" && n.Sel.Name != "Context" {
						t.Errorf("%s makes a context: context.%s", name, n.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// storing packages keep envelopes in their stored form.
var storing = []string{"internal/readyqueue", "internal/teammemory", "internal/mailbox"}

// TestOnlyTheGateOpensAnEnvelope checks that no package but the gate reads a
// raw payload, and that prompts are built from what the gate sealed.
//
// Requirement: G4.
func TestOnlyTheGateOpensAnEnvelope(t *testing.T) {
	t.Parallel()
	for pkg, files := range sources(t) {
		if pkg == "envelope" || pkg == "internal/gate" {
			continue
		}
		for name, file := range files {
			if !slices.Contains(importsOf(file), module+"/envelope") {
				continue
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 0 {
					if sel, ok := call.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Open" || sel.Sel.Name == "Record") {
						if sel.Sel.Name == "Record" && slices.Contains(storing, pkg) {
							return true // a snapshot is the stored form
						}
						t.Errorf("%s opens an envelope", name)
					}
				}
				return true
			})
		}
	}
}

// TestOnlyTheSynthesisAndScopeAllReadTheMemory checks that the engine makes a
// handle that reads in one place, beside the rule of who is given it; all else
// there can only write.
func TestOnlyTheSynthesisAndScopeAllReadTheMemory(t *testing.T) {
	t.Parallel()
	readers := map[string]bool{}
	for name, file := range sources(t)["internal/engine"] {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr) // a reader of package flow is somebody, and is not called
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Reader" {
				readers[name] = true
			}
			return true
		})
	}
	require.Equal(t, map[string]bool{"internal/engine/memory.go": true}, readers)
}

func TestFilesStayReadable(t *testing.T) {
	t.Parallel()
	banned := []string{"util", "utils", "common", "types", "models", "helpers", "misc"}
	for pkg := range sources(t) {
		require.NotContains(t, banned, path.Base(pkg))
	}
}

// A sourceTree holds the Go files of the module but tests, which are parsed once for all tests of this
// package.
type sourceTree struct {
	fset  *token.FileSet
	files map[string]map[string]*ast.File // by the package's folder and the file's path
	text  map[string][]byte               // by the file's path
}

var parsedTree = sync.OnceValues(parseTree)

// sources returns all Go files of the module but tests, by the package's folder and the file's path. The
// tests share what it returns and change nothing in it.
func sources(t *testing.T) map[string]map[string]*ast.File {
	t.Helper()
	tree, err := parsedTree()
	require.NoError(t, err)
	require.NotEmpty(t, tree.files)
	return tree.files
}

func parseTree() (*sourceTree, error) {
	tree := &sourceTree{token.NewFileSet(), map[string]map[string]*ast.File{}, map[string][]byte{}}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || err == nil) {
				return filepath.SkipDir // the last is a module of its own
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		name = filepath.ToSlash(name)
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(tree.fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := path.Dir(name)
		if tree.files[pkg] == nil {
			tree.files[pkg] = map[string]*ast.File{}
		}
		tree.files[pkg][name], tree.text[name] = file, text
		return nil
	})
	return tree, err
}

func importsOf(f *ast.File) []string {
	var list []string
	for _, spec := range f.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		list = append(list, name)
	}
	return list
}

// TestEachRequirementHasItsTest compares docs/reference/gate-requirements.md with the tests: each row
// of its table names tests that exist in the packages of that row, and each of them has a comment that
// names the requirement.
func TestEachRequirementHasItsTest(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile(`(?m)^\| G(\d+) \|[^|]*\| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(read(t, "docs/reference/gate-requirements.md"), -1)
	require.Greater(t, len(rows), 40)
	for _, row := range rows {
		var tests strings.Builder
		for _, pkg := range regexp.MustCompile("`([a-z/]+)`|the module's root").FindAllStringSubmatch(row[3], -1) {
			files, err := filepath.Glob(filepath.Join(pkg[1], "*_test.go"))
			require.NoError(t, err)
			for _, file := range files {
				tests.WriteString(read(t, file))
			}
		}
		named := regexp.MustCompile("`([A-Za-z0-9]+)`").FindAllStringSubmatch(row[2], -1)
		require.NotEmpty(t, named, "G%s names no test", row[1])
		for _, name := range named {
			require.True(t, strings.Contains(tests.String(), "// Requirement: G"+row[1]+".\nfunc "+name[1]+"("), "G%s: %s: no test %s with this requirement in its comment", row[1], row[3], name[1])
		}
	}
}
