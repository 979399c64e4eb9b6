package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// An invocation is how a run was asked for, as a journal keeps it so that it
// can be asked for again. How long a command may take is its own matter, and no
// part of it. Paths are as they were given, from Folder. What flags
// said of the work itself, the goal and the parameters, is kept as files are,
// since it may be as sensitive: see flagFiles.
type invocation struct {
	Folder       string   `json:"folder"`         // the working directory
	Spec         string   `json:"spec,omitempty"` // - is standard input
	Found        string   `json:"found"`          // where the spec was, absolute; or -
	Team         string   `json:"team,omitempty"`
	Orchestrator string   `json:"orchestrator,omitempty"`
	Coordinator  string   `json:"coordinator,omitempty"`
	Goal         bool     `json:"goal,omitempty"`
	Inputs       []string `json:"inputs,omitempty"` // NAME=FILE
	Params       []string `json:"params,omitempty"` // names
	Models       []string `json:"models,omitempty"`

	Offline bool   `json:"offline,omitempty"`
	Script  string `json:"script,omitempty"`  // of --script
	Answers string `json:"answers,omitempty"` // the digest of the script that answered; none without one

	MaxConcurrency int      `json:"maxConcurrency,omitempty"`
	MaxTokenBudget int      `json:"maxTokenBudget,omitempty"`
	MaxCostBudget  float64  `json:"maxCostBudget,omitempty"` // US dollars
	Reuse          *bool    `json:"reuse,omitempty"`         // nil means as the spec says
	Fresh          []string `json:"fresh,omitempty"`

	// Versions are what the answers of each agent depended on beside its prompts;
	// that of the coordinator stands under its name.
	Versions map[string]string `json:"versions,omitempty"`

	// Endpoints are the base URLs that agents were asked at, which the environment
	// may have brought: their clearances count when the run is looked at again.
	Endpoints map[string]string `json:"endpoints,omitempty"`

	// Fallback are likewise the base URLs of the fallback of each agent that has one.
	Fallback map[string][]string `json:"fallback,omitempty"`

	// Without and WithoutInputs are what a replay left out of the run Of that it repeats.
	Of            string   `json:"of,omitempty"`
	Without       []string `json:"without,omitempty"`
	WithoutInputs []string `json:"withoutInputs,omitempty"`

	Copies []copied `json:"copies,omitempty"` // of the files that are kept, what a journal has no place for
}

// copied is of a stored file where it was, and what was taken out of it.
type copied struct {
	Path    string   `json:"path"`
	Found   string   `json:"found,omitempty"` // if it is not Path
	Without []string `json:"without,omitempty"`
}

// The names under which a journal keeps what was said by flags. No file is called so.
const (
	goalText  = "--goal"
	paramText = "--param " // before the name of a parameter
)

// infoOf is what a journal keeps of a run beside what the run tells.
func (j *job) infoOf(a *app, file *specfile.File) (journal.Info, error) {
	of := optionsOf(file, nil, a.now())
	info := journal.Info{Run: of.Run, Name: of.Name, Command: j.command, Time: of.Time, Tasks: of.Tasks, Inputs: of.Inputs}
	v, err := j.invocation(file)
	if err != nil {
		return info, err
	}
	for _, s := range file.Stored() {
		info.Files = append(info.Files, journal.File{Path: s.Path, Text: s.Text, Label: s.Label})
		info.Label = info.Label.Join(s.Label)
		if c := (copied{Path: s.Path, Without: s.Without}); s.Found != s.Path || len(s.Without) > 0 {
			if s.Found != s.Path {
				c.Found = s.Found
			}
			v.Copies = append(v.Copies, c)
		}
	}
	for _, said := range j.flagFiles(file) {
		info.Files = append(info.Files, said)
		info.Label = info.Label.Join(said.Label)
	}
	info.Fingerprint = file.Fingerprint()
	if prices := file.Config.Prices; len(prices) > 0 {
		if info.Prices, err = json.Marshal(prices); err != nil {
			return info, err
		}
	}
	v.Endpoints, v.Fallback = endpointsOf(file, a.lookup)
	info.Invocation, err = json.Marshal(v)
	return info, err
}

// invocation says how the run was asked for.
func (j *job) invocation(file *specfile.File) (*invocation, error) {
	folder, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if j.again != nil {
		folder = j.again.memory.Folder // also if it is gone
	}
	v := &invocation{
		Folder: folder, Spec: j.path, Found: file.Path, Team: j.team, Orchestrator: j.orchestrator, Coordinator: j.coordinator,
		Goal: j.goal.given, Inputs: j.inputs, Models: j.models, Offline: j.offline, Script: j.script, Answers: j.answers,
		MaxConcurrency: j.concurrency, MaxTokenBudget: j.budget, MaxCostBudget: j.cost, Reuse: j.reuse.asked(), Fresh: j.reuse.fresh,
		Versions: map[string]string{},
	}
	if v.Found != "-" && !filepath.IsAbs(v.Found) {
		v.Found = filepath.Join(folder, v.Found)
	}
	for _, given := range j.params {
		name, _, _ := strings.Cut(given, "=")
		v.Params = append(v.Params, name)
	}
	for i := range file.Agents {
		v.Versions[file.Agents[i].Member.Name] = file.Agents[i].Member.Version
	}
	if file.Coordinator != nil {
		v.Versions[handoff.Coordinator] = file.Coordinator.Version
	}
	return v, nil
}

// flagFiles are the texts that flags gave: the goal at its label, and each
// parameter at the highest label of the texts that quote it.
func (j *job) flagFiles(file *specfile.File) (said []journal.File) {
	if j.goal.given {
		said = append(said, journal.File{Path: goalText, Text: j.goal.text, Label: label.Internal.Join(file.Goal.Classification)})
	}
	labels := paramLabels(file)
	for _, given := range j.params {
		name, value, _ := strings.Cut(given, "=")
		said = append(said, journal.File{Path: paramText + name, Text: value, Label: label.Internal.Join(labels[name])})
	}
	return said
}

// paramLabels returns the highest label of the texts that quote each parameter.
// A system prompt is internal.
func paramLabels(file *specfile.File) map[string]label.Classification {
	labels := map[string]label.Classification{}
	add := func(params []task.Param, level label.Classification) {
		for _, p := range params {
			labels[p.Name] = labels[p.Name].Join(level)
		}
	}
	for i := range file.Tasks {
		add(file.Tasks[i].Params, file.Tasks[i].Classification)
	}
	for _, goal := range []*team.Goal{file.Goal, file.Run.Answer} {
		if goal != nil {
			add(goal.Params, goal.Classification)
		}
	}
	return labels
}

// A remembered run is what a journal has of how a run was asked for.
type remembered struct {
	invocation
	stored  []specfile.StoredFile
	goal    string
	params  []string          // K=V
	missing map[string]string // of what cannot be had any more, by where it was or the name of the flag: why
}

// remember reads back what infoOf kept.
func remember(info *journal.Info) (*remembered, error) {
	m := &remembered{missing: map[string]string{}}
	if len(info.Invocation) == 0 {
		return nil, &fault{kind: kindUsage, err: fmt.Errorf("run %s was not made by this command, which cannot know how it was asked for", info.Run)}
	}
	if err := json.Unmarshal(info.Invocation, &m.invocation); err != nil {
		return nil, &fault{kind: kindRuntime, err: fmt.Errorf("run %s: how it was asked for cannot be read: %w", info.Run, err)}
	}
	about := map[string]copied{}
	for _, c := range m.Copies {
		about[c.Path] = c
	}
	for _, f := range info.Files {
		if f.Missing != "" {
			m.missing[cmp.Or(about[f.Path].Found, f.Path)] = f.Missing
			continue
		}
		name, param := strings.CutPrefix(f.Path, paramText)
		switch {
		case f.Path == goalText:
			m.goal = f.Text
		case param:
			m.params = append(m.params, name+"="+f.Text)
		default:
			c := about[f.Path]
			m.stored = append(m.stored, specfile.StoredFile{Path: f.Path, Found: cmp.Or(c.Found, f.Path), Text: f.Text, Label: f.Label, Without: c.Without})
		}
	}
	return m, nil
}

// source is the spec as the run had it, with what flags set in it.
func (m *remembered) source() (source, error) {
	s := source{
		path: m.Spec, team: m.Team, orchestrator: m.Orchestrator, coordinator: m.Coordinator,
		inputs: m.Inputs, params: m.params, models: m.Models, stored: m.stored,
	}
	if m.Goal {
		if why := m.missing[goalText]; why != "" {
			return s, &fault{kind: kindRuntime, err: fmt.Errorf("the goal of the run cannot be read: %s", why)}
		}
		s.goal = goalFlag{text: m.goal, given: true, fixed: true}
	}
	if names := m.missingParams(); len(names) > 0 {
		return s, &fault{kind: kindRuntime, err: fmt.Errorf("what --param said of %s cannot be read: %s", strings.Join(names, ", "), m.missing[paramText+names[0]])}
	}
	return s, nil
}

// missingParams returns the names of the parameters whose values are missing.
func (m *remembered) missingParams() (names []string) {
	for _, name := range m.Params {
		if m.missing[paramText+name] != "" {
			names = append(names, name)
		}
	}
	return names
}

// restoreVersions gives the agents of a spec the versions that they had in the run.
func (m *remembered) restoreVersions(file *specfile.File) {
	for i := range file.Agents {
		member := &file.Agents[i].Member
		if v, ok := m.Versions[member.Name]; ok {
			member.Version = v
		}
	}
	if v, ok := m.Versions[handoff.Coordinator]; ok && file.Coordinator != nil {
		file.Coordinator.Version = v
	}
}
