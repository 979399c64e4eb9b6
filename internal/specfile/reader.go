package specfile

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/task"
)

// Load reads the spec that o names and every file that the spec names. The error is an
// [*Error] that lists everything wrong in all of them. Names, titles, references and labels
// are checked by [File.Build] and by the team's Plan; [File.Locate] finds their places. A
// file without tasks is valid: it only defines a team.
func Load(o Options) (*File, error) { return LoadContext(context.Background(), o) }

// LoadContext is Load with a context. When ctx ends, it stops reading folders and returns an error.
func LoadContext(ctx context.Context, o Options) (*File, error) {
	r := newReader(o)
	r.ctx = ctx
	r.read()
	f := r.file
	if len(r.found) > 0 {
		r.found = append(r.found, f.checkReferences(r.found)...)
		return nil, &Error{Problems: locate(r.found)}
	}
	if len(r.warned) > 0 {
		f.Warnings = locate(r.warned)
	}
	for id := range r.texts {
		f.reads = append(f.reads, filepath.Join(id.dir, id.path))
	}
	slices.Sort(f.reads)
	f.places.loaded = r.loaded
	f.places.flags = slices.Concat([]string{o.Goal}, o.Models, r.results)
	for _, name := range sortedKeys(o.Params) {
		f.places.flags = append(f.places.flags, name, o.Params[name])
	}
	return f, nil
}

// Reads returns the paths of the files that the spec names with {file: PATH}
// and that were read: prompts, inputs, schemas, in the order of their names.
func (f *File) Reads() []string { return slices.Clone(f.reads) }

// A loader reads each file once, from the disk or from a stored copy, and opens the layers of a spec.
type loader struct {
	*environment
	sources int // how many were read
	texts   map[fileID]*source
	trees   map[*source]*node // of files that are JSON or YAML themselves
	named   map[*node]*source // what a {file: PATH} was read from
	loaded  []*loadedFile
}

// A layer is one file that settings may come from. An earlier layer takes precedence.
type layer struct {
	node *node
	spec *fields
	team *fields // the key team
	orch *fields // the key orchestrator, or a separate file
}

// newReader opens the files of a spec. Files that cannot be read are reported.
func newReader(o Options) *reader {
	p := &places{files: make(map[*node]*source), whens: make(map[*fields]conditionPlace), loops: make(map[*fields]loopPlace)}
	option := "Path"
	if o.Path == "" && o.Team != "" {
		o.Path, o.Team, option = o.Team, "", "Team"
		p.compat = true
	}
	l := &loader{environment: &environment{report: &report{}, o: o}, texts: make(map[fileID]*source), trees: make(map[*source]*node), named: p.files}
	p.options = &l.o
	p.main = l.layer(o.Path, option)
	p.layers, p.roster = []*layer{p.main}, p.main
	if o.Team != "" {
		p.compat = true
		p.roster = l.layer(o.Team, "Team")
		l.checkTeamFile(p.roster)
		l.warnUnusedAgents(p.main)
		p.layers = append(p.layers, p.roster)
	}
	if o.Orchestrator != "" {
		p.layers = append([]*layer{{}}, p.layers...)
		if n := l.open(o.Orchestrator, "Orchestrator"); n != nil {
			p.layers[0].orch = l.fields(n, "orchestrator", nil)
		}
	}
	f := &File{places: p, Path: o.Path, Compat: p.compat || p.main.team != nil}
	if p.main.node != nil {
		f.Path, f.Dir = p.main.node.src.path, p.main.node.src.dir
	}
	p.params = make(map[string]*param)
	r := &reader{loader: l, places: p, file: f, schemas: make(map[string]json.RawMessage), fallbacks: make(map[*node][]*fields)}
	return r
}

// layer opens a file and reads its top-level keys. For a file that cannot be read, the
// layer is empty.
func (l *loader) layer(path, option string) *layer {
	y := &layer{node: l.open(path, option)}
	if y.node == nil {
		return y
	}
	if y.node.is != isObject {
		l.bad(y.node, wholeFile(y.node.src, option), "%s where keys such as %s belong", y.node.describe(), strings.Join(outermost(option), " and "))
		return y
	}
	if y.spec = l.fields(y.node, "spec", nil); y.spec == nil {
		return y
	}
	if n := y.spec.own("team"); n != nil {
		y.team = l.fields(n, "team", nil)
		if agents := y.spec.own("agents"); agents != nil {
			l.bad(agents, "keep one of them", "agents: team has the agents of this file")
		}
	}
	if n := y.spec.own("orchestrator"); n != nil {
		y.orch = l.fields(n, "orchestrator", nil)
		for _, pair := range settings {
			if own, other := y.spec.own(pair.spec), y.orch.own(pair.orch); own != nil && other != nil {
				l.bad(other, "keep one of them", "%s: %s of the file is set too", pair.orch, pair.spec)
			}
		}
	}
	return y
}

// outermost names the keys that most specs or files of a team have.
func outermost(option string) []string {
	if option == "Team" {
		return []string{"name", "agents"}
	}
	return []string{"agents", "tasks"}
}

// wholeFile says what the file of an option looks like, in the language that it is written in.
func wholeFile(s *source, option string) string {
	switch json := s.likeJSON(); {
	case option != "Path" && option != "Team":
		return "write " + optionFiles[option].holds
	case json && option == "Team":
		return `write {"name": "…", "agents": […]}`
	case json:
		return `write {"team": {…}, "tasks": […]}`
	}
	return "write " + strings.Join(outermost(option), ": and ") + ":"
}

// settings pairs keys of a spec with the keys of an orchestrator that mean the same.
var settings = []struct{ spec, orch string }{
	{"model", "defaultModel"}, {"provider", "defaultProvider"}, {"baseURL", "defaultBaseURL"}, {"apiKey", "defaultApiKey"},
	{"maxConcurrency", "maxConcurrency"}, {"maxTokenBudget", "maxTokenBudget"}, {"maxCostBudget", "maxCostBudget"}, {"schedulingStrategy", "schedulingStrategy"}, {"strictAssignees", "strictAssignees"},
}

// checkTeamFile reports keys in the file of a team that belong to a run.
func (l *loader) checkTeamFile(y *layer) {
	y.spec.refuse(l.report, []string{"goal", "mode", "tasks", "taskDefaults", "inputs", "policy", "assert", "messages", "edges", "output", "offline", "timeoutMs", "reuse"},
		"the file of "+l.o.called("Team")+" brings a team only", "move it to the spec")
}

// warnUnusedAgents warns of agents that the file of a team replaces.
func (l *loader) warnUnusedAgents(y *layer) {
	for _, name := range [...]string{"team", "agents"} {
		if n := y.spec.own(name); n != nil {
			l.warn(n, "", "%s: not used: %s brings the team", name, l.o.called("Team"))
		}
	}
}

// A reader reads a File out of layers. The methods that read one part of a spec are in a file of
// their own; they add to the file and to its places.
type reader struct {
	*loader
	ctx       context.Context //nolint:containedctx // of one load
	places    *places
	file      *File
	results   []string                   // what identifies the results of earlier runs that inputs are
	schemas   map[string]json.RawMessage // of the key schemas; nil for one that could not be read
	fallbacks map[*node][]*fields        // the entries of each list of a fallback, as they are written
	textCalls map[string]bool            // by base URL: what endpoints say about calls written as text
}

// schemaOfAgent returns the outputSchema of the agent that a task names; nil if there is none.
func schemaOfAgent(f *File, s *task.Spec) json.RawMessage {
	for i := range f.Agents {
		if m := &f.Agents[i].Member; m.Name == s.Assignee {
			return m.OutputSchema
		}
	}
	return nil
}

// setting returns the value of a key of a spec from the first layer that has one, or nil.
func (p *places) setting(spec string) *node {
	orch := ""
	for _, pair := range settings {
		if pair.spec == spec {
			orch = pair.orch
		}
	}
	for _, y := range p.layers {
		if n := y.spec.own(spec); n != nil {
			return n
		}
		if n := y.orch.own(orch); n != nil {
			return n
		}
	}
	return nil
}

// read fills in the file. Each part is read even if another one is invalid.
func (r *reader) read() {
	r.readParams(r.places.layers)
	r.readSchemas(r.places.layers)
	r.readAgents()
	r.readTools()
	r.readInputs()
	r.readTasks()
	r.file.Tasks = task.BoundLists(r.file.Tasks, func(s *task.Spec) json.RawMessage { return schemaOfAgent(r.file, s) })
	if r.readChat(); r.o.Chat {
		r.dropTasks()
	} else {
		r.readGoal()
	}
	r.readCoordinator()
	r.readFormats()
	r.readMessages()
	r.readEdges()
	r.readPolicy()
	r.readRun()
	r.readModels()
	if r.o.Chat {
		r.narrowToAnswerer()
	}
	r.checkEnv()
	r.readVersions()
	r.readPrices()
	r.checkMemory()
	r.checkIdle()
	r.checkPrices()
	r.checkUnused()
	r.checkGrantedTools()
	r.checkBudgets()
	r.checkProviders()
	r.checkPaths()
}

// taskName names task i in a message.
func taskName(i int, title string) string {
	if title = strings.TrimSpace(title); title == "" {
		return fmt.Sprintf("task %d", i+1)
	}
	return "task " + quote(title)
}

// origin returns the position of a byte of a source.
func origin(src *source, at int) provenance.Position {
	line, column := src.place(at)
	return provenance.Position{File: withoutSecrets(src.path), Line: line, Column: column}
}

// origin returns the position of a value.
func (n *node) origin() provenance.Position { return origin(n.src, n.at) }
