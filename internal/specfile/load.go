package specfile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runteam/runteam/task"
)

// Load reads the spec that o names and every file that the spec names. The
// error is an [*Error] with everything wrong in all of them. What a team
// checks (names, titles, references, labels) is checked by [File.Build] and
// by the team's Plan, and placed by [File.Locate]. A file without tasks is a
// roster, and fine.
func Load(o Options) (*File, error) {
	l := &loader{
		o: o, params: make(map[string]*param), schemas: make(map[string]*schemaText),
		files: make(map[fileID]*source), places: &places{files: make(map[*node]*source), links: make(map[*fields]*link), fallback: make(map[*fields][]*fields), entries: make(map[*node][]*fields), models: make(map[*fields]string), accepts: make(map[string]bool)},
	}
	l.places.params, l.places.given = l.params, o.Inputs
	f := l.load()
	if len(l.found) > 0 {
		l.found = append(l.found, f.follow(l.found)...)
		return nil, &Error{Problems: locate(l.found)}
	}
	if len(l.warned) > 0 {
		f.Warnings = locate(l.warned)
	}
	for id := range l.files {
		f.reads = append(f.reads, filepath.Join(id.dir, id.path))
	}
	slices.Sort(f.reads)
	l.places.kept = l.kept
	l.places.flags = append(append([]string{o.Goal}, o.Models...), l.results...)
	for _, name := range sortedKeys(o.Params) {
		l.places.flags = append(l.places.flags, name, o.Params[name])
	}
	return f, nil
}

// Reads returns the paths of the files that the spec names with {file: PATH}
// and that were read: prompts, inputs, schemas, in the order of their names.
func (f *File) Reads() []string { return slices.Clone(f.reads) }

// A loader reads one spec.
type loader struct {
	o       Options
	sources int // how many were read
	found   []finding
	warned  []finding
	subject func() string // what is being read, for messages; nil for the file itself

	params  map[string]*param
	schemas map[string]*schemaText
	files   map[fileID]*source
	kept    []*kept
	results []string  // what identifies the results of earlier runs that inputs are
	sends   []sending // variables of the environment, and where they go
	places  *places
}

// A layer is one file that settings may come from. Later layers are asked
// only for what earlier ones do not say.
type layer struct {
	node *node
	spec *fields
	team *fields // the key team
	orch *fields // the key orchestrator, or a file of its own
}

// load reads all files and makes a File of them, as far as they can be read.
func (l *loader) load() *File {
	flag := ""
	if l.o.Path == "" && l.o.Team != "" {
		l.o.Path, l.o.Team, flag = l.o.Team, "", "--team"
		l.places.compat = true
	}
	main := l.layer(l.o.Path, flag)
	layers := []*layer{main}
	roster := main
	if l.o.Team != "" {
		l.places.compat = true
		roster = l.layer(l.o.Team, "--team")
		l.onlyRoster(roster)
		l.unusedRoster(main)
		layers = append(layers, roster)
	}
	if l.o.Orchestrator != "" {
		layers = append([]*layer{{}}, layers...)
		if n := l.open(l.o.Orchestrator, "--orchestrator"); n != nil {
			layers[0].orch = l.fields(n, orchestratorPlace, nil)
		}
	}
	f := &File{places: l.places, Path: l.o.Path, Compat: l.places.compat || main.team != nil}
	l.places.main = main
	if main.node != nil {
		f.Path, f.Dir = main.node.src.path, main.node.src.dir
	}
	l.places.layers, l.places.roster = layers, roster
	r := &reader{loader: l, layers: layers, roster: roster, file: f}
	r.read()
	return f
}

// layer opens a file and reads its outermost keys. A file that cannot be read
// gives a layer that says nothing.
func (l *loader) layer(path, flag string) *layer {
	y := &layer{node: l.open(path, flag)}
	if y.node == nil {
		return y
	}
	if y.node.is != isObject {
		l.bad(y.node, ErrInvalid, wholeFile(y.node.src, flag), "%s where keys such as %s belong", y.node.describe(), strings.Join(outermost(flag), " and "))
		return y
	}
	if y.spec = l.fields(y.node, specPlace, nil); y.spec == nil {
		return y
	}
	if n := y.spec.own("team"); n != nil {
		y.team = l.fields(n, teamPlace, nil)
		if agents := y.spec.own("agents"); agents != nil {
			l.bad(agents, ErrInvalid, "keep one of them", "agents: team has the agents of this file")
		}
	}
	if n := y.spec.own("orchestrator"); n != nil {
		y.orch = l.fields(n, orchestratorPlace, nil)
		for _, pair := range settings {
			if own, other := y.spec.own(pair.spec), y.orch.own(pair.orch); own != nil && other != nil {
				l.bad(other, ErrInvalid, "keep one of them", "%s: %s of the file says it too", pair.orch, pair.spec)
			}
		}
	}
	return y
}

// outermost names the keys of a spec, or of a file of --team, that most have.
func outermost(flag string) []string {
	if flag == "--team" {
		return []string{"name", "agents"}
	}
	return []string{"agents", "tasks"}
}

// wholeFile says what the file of a flag, "" for a spec, looks like, in the
// language that it is written in.
func wholeFile(s *source, flag string) string {
	switch json := s.likeJSON(); {
	case flag != "" && flag != "--team":
		return "write " + flagFiles[flag]
	case json && flag == "--team":
		return `write {"name": "…", "agents": […]}`
	case json:
		return `write {"team": {…}, "tasks": […]}`
	}
	return "write " + strings.Join(outermost(flag), ": and ") + ":"
}

// settings are the keys of an orchestrator and the keys of a spec that mean the same.
var settings = []struct{ spec, orch string }{
	{"model", "defaultModel"}, {"provider", "defaultProvider"}, {"baseURL", "defaultBaseURL"}, {"apiKey", "defaultApiKey"},
	{"maxConcurrency", "maxConcurrency"}, {"maxTokenBudget", "maxTokenBudget"}, {"maxCostBudget", "maxCostBudget"}, {"schedulingStrategy", "schedulingStrategy"}, {"strictAssignees", "strictAssignees"},
}

// onlyRoster refuses in a file of --team what belongs to a run.
func (l *loader) onlyRoster(y *layer) {
	for _, name := range [...]string{"goal", "mode", "tasks", "taskDefaults", "inputs", "policy", "assert", "messages", "output", "offline", "timeoutMs", "reuse"} {
		if n := y.spec.own(name); n != nil {
			l.bad(n, ErrInvalid, "move it to the file that --team stands beside", "%s: a file of --team brings a team only", name)
		}
	}
}

// unusedRoster warns of a roster that --team takes the place of.
func (l *loader) unusedRoster(y *layer) {
	for _, name := range [...]string{"team", "agents"} {
		if n := y.spec.own(name); n != nil {
			l.warnAt(n.src, n.at, "", "%s: not used: --team brings the team", name)
		}
	}
}

// setting is what [places.setting] finds.
func (r *reader) setting(spec string) *node { return r.places.setting(spec) }

// A reader reads a File out of layers.
type reader struct {
	*loader
	layers []*layer
	roster *layer // the one with the agents
	file   *File
	mine   func() string // subject of the agent or task that is being read
}

// setting returns what the first layer that says it says, by the name of the
// key in a spec.
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

// read fills the file in. Each part is read also if another one is broken.
func (r *reader) read() {
	r.readParams(r.layers)
	r.readSchemas(r.layers)
	r.readAgents()
	r.readInputs()
	r.readTasks()
	r.readGoal()
	r.readCoordinator()
	r.readMessages()
	r.readPolicy()
	r.readRun()
	r.readModels()
	r.checkEnv()
	r.readVersions()
	r.readPrices()
	r.checkMemory()
	r.checkIdle()
	r.checkPrices()
	r.checkUnused()
}

// taskName names task i in a message.
func taskName(i int, title string) string {
	if title = strings.TrimSpace(title); title == "" {
		return fmt.Sprintf("task %d", i+1)
	}
	return "task " + quote(title)
}

// origin is where a value stands, for the types of other packages.
func origin(src *source, at int) task.Position {
	line, column := src.place(at)
	return task.Position{File: veiled(src.path), Line: line, Column: column}
}
