// Package restored reads the spec of a stored run from the copies in the journal, not from the files,
// which may have changed. It builds the team with agents that are not called.
package restored

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
)

// Options say how the spec of a run is read. The zero value is for a spec whose agents are not called.
type Options struct {
	Models      []string // as of --model, in addition to those of the run
	Environment source.EnvironmentFlags
	CallsModels bool // models are called, unless the run was offline
	Offline     bool // no model is called
}

// A Spec is the spec of a stored run.
type Spec struct {
	Invocation *run.StoredInvocation
	File       *specfile.File
}

// Load reads the spec of a run that a journal has. The environment is that of the command; its
// variables may be missing if no model is called. It sets the environment of con to that of the spec.
func Load(ctx context.Context, con *console.Console, g *journals.Flags, info *journal.Info, o Options) (*Spec, error) {
	m, err := run.ReadInvocation(info)
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(m.Missing)) {
		return nil, exit.Errorf(exit.KindRuntime, "run %s cannot be replayed: %s: %s", info.Run, path, m.Missing[path])
	}
	src, err := m.Source()
	if err != nil {
		return nil, err
	}
	src.StoredOnly, src.Results, src.Conversation = true, g.Results(con), g.Conversation(con)
	src.Models = append(src.Models, o.Models...)
	src.Environment, src.NoCalls = o.Environment, !o.CallsModels || m.Offline || o.Offline
	file, err := src.Load(ctx, con)
	if err != nil {
		return nil, err
	}
	if file.Offline != "" && !filepath.IsAbs(file.Offline) {
		file.Offline = filepath.Join(m.Folder, file.Offline)
	}
	file.Config.Logger = con.Log
	return &Spec{m, file}, m.RestoreTools(file)
}

// RestoreModels sets the models that the agents had in the run, which may be from the environment.
func (s *Spec) RestoreModels(log []record.Entry) {
	models := map[string]string{}
	for i := range log {
		if x := log[i].Exchange; x != nil {
			models[x.Agent] = x.Model
		}
	}
	file := s.File
	for i := range file.Agents {
		if model, ok := models[file.Agents[i].Member.Name]; ok && file.Agents[i].HasModel() {
			file.Agents[i].Model, file.Agents[i].Member.Model = model, model
		}
	}
	if c := file.Coordinator; c != nil {
		if model, ok := models[handoff.Coordinator]; ok {
			c.Connection.Model, c.Coordinator.Model = model, model
		}
	}
}

// SilentTeam builds the team with agents that are not called. Their endpoints are those of the run.
func (s *Spec) SilentTeam(lookup func(string) (string, bool)) (*engine.Team, error) {
	m := s.Invocation
	return connect.BuildTeam(s.File, func(ag specfile.Agent) (engine.Agent, error) {
		if ag.Process != nil {
			return silentProcess(ag.Process)
		}
		if ag.Person {
			return connect.Absent(ag.Users), nil
		}
		bases := append([]string{m.Endpoints[ag.Member.Name]}, m.Fallback[ag.Member.Name]...)
		if bases[0] == "" {
			bases, _ = connect.AllBaseURLs(ag.Connection, lookup)
		}
		return connect.SilentAgent(ag, bases, nil), nil
	})
}

// silentProcess returns a command that is not run, as confined as the given one. The program of that
// one may be missing here.
func silentProcess(p *agent.Process) (engine.Agent, error) {
	self, err := os.Executable()
	return &agent.Process{Command: self, Confine: p.Confine, Repeatable: p.Repeatable}, err
}
