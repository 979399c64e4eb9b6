package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/team"
)

// checked is what check says of a spec that has no error, in JSON.
type checked struct {
	OK       bool           `json:"ok"`
	Name     string         `json:"name,omitempty"`
	File     string         `json:"file"`
	Agents   int            `json:"agents"`
	Inputs   int            `json:"inputs"`
	Tasks    int            `json:"tasks"`
	Warnings []spec.Problem `json:"warnings"`
}

func (a *app) checkCommand() *cobra.Command {
	s := &source{}
	cmd := &cobra.Command{
		Use:   "check [SPEC]",
		Short: "Say everything that is wrong with a spec; nothing is run",
		Args:  atMostOne,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				s.path = args[0]
			}
			return a.check(s)
		},
	}
	s.flags(cmd)
	s.mergeFlags(cmd)
	return cmd
}

func (a *app) check(s *source) error {
	file, plan, err := a.look(s)
	if err != nil {
		return err
	}
	c := checked{OK: true, Name: file.Name, File: file.Path, Agents: len(file.Agents), Inputs: len(file.Run.Inputs), Tasks: len(file.Tasks)}
	c.Warnings = append(warnings(file, plan), modelless(file)...)
	if a.settings.json() {
		return a.printJSON(c)
	}
	a.warn(c.Warnings)
	return a.printText(c.String())
}

// String is the line for people.
func (c checked) String() string {
	text := fmt.Sprintf("%s: ok: %s, %s, %s", c.File, plural(c.Tasks, "task"), plural(c.Agents, "agent"), plural(c.Inputs, "input"))
	if c.Tasks == 0 {
		text += "; without tasks it can be checked, but not run"
	}
	if n := len(c.Warnings); n > 0 {
		text += "; " + plural(n, "warning")
	}
	return text
}

// modelless warns of the agents that no model is named for: a run needs one
// for each, unless it is offline. A roster may get them where it is used.
func modelless(file *spec.File) []spec.Problem {
	if len(file.Tasks) == 0 {
		return nil
	}
	var names []string
	var first *spec.Agent
	for i := range file.Agents {
		if ag := &file.Agents[i]; ag.Model == "" {
			if names = append(names, fmt.Sprintf("%q", ag.Member.Name)); first == nil {
				first = ag
			}
		}
	}
	if first == nil {
		return nil
	}
	message := fmt.Sprintf("agent %s has no model", names[0])
	if len(names) > 1 {
		message = "agents " + listed(names, 5) + " have no model"
	}
	at := first.Member.Origin
	return []spec.Problem{{File: at.File, Line: at.Line, Column: at.Column, Message: message, Hint: "write model: in the spec, or give --model; --offline needs none"}}
}

// look reads a spec and plans its tasks, without a key, a network or a model.
// The plan of a spec without tasks is nil.
func (a *app) look(s *source) (*spec.File, *team.Plan, error) {
	file, err := s.load(a)
	if err != nil {
		return nil, nil, err
	}
	t, err := build(file, unasked(a.lookup))
	if err != nil {
		return nil, nil, err
	}
	if len(file.Tasks) == 0 {
		return file, nil, nil
	}
	plan, err := t.Plan(file.Tasks, &file.Run)
	if err != nil {
		return nil, nil, file.Locate(err)
	}
	return file, plan, nil
}
