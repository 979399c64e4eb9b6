package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/records"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
)

// toolsFile is the name under which a journal stores the definitions of the MCP servers' tools. No file has such a name.
const toolsFile = "--tools"

// isText reports whether what an input is given by names a text that came with a request, and no file.
func isText(given string) bool { return strings.HasPrefix(given, journal.GivenInput) }

// infoOf returns what a journal stores about a run when it begins.
func (j *Job) infoOf(con *console.Console, file *specfile.File) (journal.Info, error) {
	of := records.TraceOptions(file, nil, con.Now())
	info := journal.Info{Run: of.Run, Name: of.Name, Command: j.Command, Starter: j.starter, Spec: specName(file.Name, file.Path), Time: of.Time, Inputs: of.Inputs}
	v, err := j.invocation(con, file)
	if err != nil {
		return info, err
	}
	for _, s := range file.Stored() {
		info.Files = append(info.Files, journal.File{Path: s.Path, Text: s.Text, Label: s.Label})
		info.Label = info.Label.Join(s.Label)
		if c := (journals.FileCopy{Path: s.Path, Without: s.Without}); s.Found != s.Path || len(s.Without) > 0 {
			if s.Found != s.Path {
				c.Found = s.Found
			}
			v.Copies = append(v.Copies, c)
		}
	}
	definitions, err := json.Marshal(file.Tools.Definitions())
	if err != nil {
		return info, err
	}
	if text := string(definitions); text != "null" {
		info.Files = append(info.Files, journal.File{Path: toolsFile, Text: text, Label: label.Internal})
		v.Tools = fmt.Sprintf("%x", sha256.Sum256(definitions))
	}
	for _, f := range j.flagFiles(file) {
		info.Files = append(info.Files, f)
		info.Label = info.Label.Join(f.Label)
	}
	info.Fingerprint = file.Fingerprint()
	if prices := file.Config.Prices; len(prices) > 0 {
		if info.Prices, err = json.Marshal(prices); err != nil {
			return info, err
		}
	}
	v.Endpoints, v.Fallback = connect.BaseURLs(file, con.LookupEnv)
	info.Invocation, err = json.Marshal(v)
	return info, err
}

// invocation returns the arguments and flags of the run.
func (j *Job) invocation(con *console.Console, file *specfile.File) (*journals.Invocation, error) {
	folder, err := con.WorkDir.Getwd()
	if err != nil {
		return nil, err
	}
	if j.resumed != nil && j.resumed.run == nil {
		folder = j.resumed.invocation.Folder // even if it no longer exists
	}
	v := &journals.Invocation{
		Folder: folder,
		SpecArguments: journals.SpecArguments{
			Spec: j.Path, Found: file.Path, Team: j.Team, Orchestrator: j.Orchestrator, Coordinator: j.Coordinator, Goal: j.Goal.Given, Inputs: j.Inputs, Models: j.Models,
			StrictTools: j.StrictTools,
		},
		Offline: j.Offline, Script: j.Script, Answers: j.Digest,
		MaxConcurrency: j.Concurrency, MaxTokenBudget: j.Budget, MaxCostBudget: j.Cost, Reuse: j.reuse.override(), Fresh: j.reuse.fresh,
		AllowWidening: j.allowWidening, Versions: map[string]string{}, Request: j.request,
	}
	if j.resumed != nil {
		v.Request = j.resumed.invocation.Request
	}
	if v.Found != "-" && !filepath.IsAbs(v.Found) {
		v.Found = filepath.Join(folder, v.Found)
	}
	for _, given := range j.Params {
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

// flagFiles returns the texts that flags gave: the goal at its label, and each parameter at the
// highest label of the texts that quote it.
func (j *Job) flagFiles(file *specfile.File) (all []journal.File) {
	if j.Goal.Given {
		all = append(all, journal.File{Path: journal.GivenGoal, Text: j.Goal.Text, Label: label.Internal.Join(file.Goal.Classification)})
	}
	labels := paramLabels(file)
	for _, given := range j.Params {
		name, value, _ := strings.Cut(given, "=")
		all = append(all, journal.File{Path: journal.GivenParam + name, Text: value, Label: label.Internal.Join(labels[name])})
	}
	return all
}

// paramLabels returns the highest label of the texts that quote each parameter.
// A system prompt is internal.
func paramLabels(file *specfile.File) map[string]label.Classification {
	labels := map[string]label.Classification{}
	add := func(params []provenance.Param, level label.Classification) {
		for _, p := range params {
			labels[p.Name] = labels[p.Name].Join(level)
		}
	}
	for i := range file.Tasks {
		add(file.Tasks[i].Source.Params, file.Tasks[i].Classification)
	}
	for _, goal := range []*engine.Goal{file.Goal, file.Run.Answer} {
		if goal != nil {
			add(goal.Source.Params, goal.Classification)
		}
	}
	return labels
}

// A StoredInvocation is an invocation that a journal has, with the texts of its files and flags.
type StoredInvocation struct {
	journals.Invocation
	turn    *record.SessionTurn // nil if the run is no turn of a session
	stored  []specfile.StoredFile
	goal    string
	tools   string            // the definitions of the MCP servers' tools
	params  []string          // K=V
	Missing map[string]string // why a text cannot be read, by the path of its file or the name of its flag
}

// ReadInvocation reads the invocation that infoOf stored.
func ReadInvocation(info *journal.Info) (*StoredInvocation, error) {
	m := &StoredInvocation{turn: info.Turn, Missing: map[string]string{}}
	if info.Unreadable != "" {
		return nil, exit.Errorf(exit.KindRuntime, "run %s: what it was started with cannot be read: it is %s", info.Run, info.Unreadable)
	}
	if len(info.Invocation) == 0 {
		return nil, exit.Usagef("run %s was not begun by this command, so its arguments are unknown", info.Run)
	}
	if err := json.Unmarshal(info.Invocation, &m.Invocation); err != nil {
		return nil, exit.Errorf(exit.KindRuntime, "run %s: its arguments cannot be read: %w", info.Run, err)
	}
	about := map[string]journals.FileCopy{}
	for _, c := range m.Copies {
		about[c.Path] = c
	}
	for _, f := range info.Files {
		if f.Missing != "" {
			m.Missing[cmp.Or(about[f.Path].Found, f.Path)] = f.Missing
			continue
		}
		name, param := strings.CutPrefix(f.Path, journal.GivenParam)
		switch {
		case f.Path == journal.GivenGoal:
			m.goal = f.Text
		case f.Path == toolsFile:
			m.tools = f.Text
		case param:
			m.params = append(m.params, name+"="+f.Text)
		default:
			c := about[f.Path]
			m.stored = append(m.stored, specfile.StoredFile{Path: f.Path, Found: cmp.Or(c.Found, f.Path), Text: f.Text, Label: f.Label, Without: c.Without})
		}
	}
	return m, nil
}

// Source returns the spec of the run, with the flags that set something in it.
func (m *StoredInvocation) Source() (source.SpecFlags, error) {
	s := source.SpecFlags{
		Path: m.Spec, Team: m.Team, Orchestrator: m.Orchestrator, Coordinator: m.Coordinator,
		Inputs: m.Inputs, Params: m.params, Models: m.Models, Stored: m.stored, StrictTools: m.StrictTools,
	}
	if t := m.turn; t != nil {
		if s.Chat, s.Agent, s.Turn = true, t.Agent, t; t.Missing != "" {
			return s, exit.Errorf(exit.KindRuntime, "what was said in turn %d of the session cannot be read: it is %s", t.Turn, t.Missing)
		}
	}
	if m.Goal {
		if why := m.Missing[journal.GivenGoal]; why != "" {
			return s, exit.Errorf(exit.KindRuntime, "the goal of the run cannot be read: %s", why)
		}
		s.Goal = source.GoalFlag{Text: m.goal, Given: true, Literal: true}
	}
	if names := m.missingParams(); len(names) > 0 {
		return s, exit.Errorf(exit.KindRuntime, "the value of --param %s cannot be read: %s", strings.Join(names, ", "), m.Missing[journal.GivenParam+names[0]])
	}
	return s, nil
}

// missingParams returns the names of the parameters whose values are missing.
func (m *StoredInvocation) missingParams() (names []string) {
	for _, name := range m.Params {
		if m.Missing[journal.GivenParam+name] != "" {
			names = append(names, name)
		}
	}
	return names
}

// RestoreTools gives the MCP servers' tools the definitions that they had in the run, without
// connecting to a server; their calls fail.
func (m *StoredInvocation) RestoreTools(file *specfile.File) error {
	if m.tools == "" {
		return nil
	}
	var all []specfile.ToolDefinition
	if err := json.Unmarshal([]byte(m.tools), &all); err != nil {
		return exit.Errorf(exit.KindRuntime, "the definitions of the tools of the run cannot be read: %w", err)
	}
	file.Tools.Restore(all)
	return nil
}
