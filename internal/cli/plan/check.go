package plan

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/spf13/cobra"
)

// checkDocument is the output of check for a spec without errors, in JSON. It is not OK if an
// assertion is broken.
type checkDocument struct {
	OK       bool               `json:"ok"`
	Name     string             `json:"name,omitempty"`
	File     string             `json:"file"`
	Agents   int                `json:"agents"`
	Inputs   int                `json:"inputs"`
	Tasks    int                `json:"tasks"`
	Goal     bool               `json:"goal,omitempty"` // the coordinator plans the tasks
	Warnings []specfile.Problem `json:"warnings"`

	Environment []specfile.EnvUse `json:"environment,omitempty"` // which variables are sent where

	Assertions []engine.Finding `json:"assertions,omitempty"` // OK says whether all hold

	Assigned []assignedTask `json:"assigned,omitempty"` // the tasks without an assignee, and who gets each
	Strategy string         `json:"strategy,omitempty"` // by which they are assigned; none without such tasks

	tasks string // how many there are, and how often they run at most
}

// An assignedTask is a task of which the spec does not say who performs it.
type assignedTask struct {
	Task     string `json:"task"`
	Assignee string `json:"assignee"`
}

// why says how a strategy chooses.
var why = map[assign.Strategy]string{
	assign.DependencyFirst: "which takes the agents in turn",
	assign.CapabilityMatch: "by the words that agents share with the task",
}

// CheckCommand returns the command check.
func CheckCommand(con *console.Console) *cobra.Command {
	s := &source.SpecFlags{}
	cmd := &cobra.Command{
		Use:   "check [SPEC]",
		Short: "Report every mistake in a spec; nothing is run",
		Long: `check reports every mistake in a spec with its line, and which variables of your
environment the spec sends where. It runs nothing. If context can flow where the spec
asserts that it cannot, check shows the path, and the exit status is 1.`,
		Args: s.Argument,
		RunE: func(cmd *cobra.Command, _ []string) error { return check(cmd.Context(), con, s) },
	}
	s.AddTo(cmd)
	s.AddMergeFlagsTo(cmd)
	s.AddGoalFlagsTo(cmd)
	return cmd
}

func check(ctx context.Context, con *console.Console, s *source.SpecFlags) error {
	var read bytes.Buffer // of standard input, which a spec with a chat needs twice
	con.Stdin = io.TeeReader(con.Stdin, &read)
	file, err := s.Load(ctx, con)
	if err != nil {
		return err
	}
	plan, err := checkedPlan(ctx, con, file)
	if err != nil {
		return err
	}
	con.Stdin = &read
	found, err := chatFindings(ctx, con, s, file)
	if err != nil {
		return err
	}
	if plan != nil {
		found = joinFindings(plan.Findings, found)
	}
	c := checkDocument{OK: true, Name: file.Name, File: file.Path, Agents: len(file.Agents), Inputs: len(file.Run.Inputs), Tasks: len(file.Tasks), Goal: file.Goal != nil}
	c.tasks = format.Plural(c.Tasks, "task")
	if plan != nil && !c.Goal {
		c.Tasks, c.tasks = len(plan.Tasks), tasksText(plan)
		for i := range plan.Tasks {
			if t := &plan.Tasks[i]; t.Assigned {
				c.Assigned, c.Strategy = append(c.Assigned, assignedTask{t.Title, t.Assignee}), string(file.Run.Strategy.Current())
			}
		}
	}
	c.Warnings = append(source.Warnings(file, plan), agentsWithoutModel(file)...)
	c.Environment = source.SentVariables(file, con.LookupEnv)
	c.Assertions, c.OK = found, len(brokenFindings(found)) == 0
	if con.Settings.JSON() {
		err = con.PrintJSON(c)
	} else {
		con.Warn(c.Warnings)
		err = con.PrintText(c.String())
	}
	if err != nil {
		return err
	}
	return reportBroken(con, found, con.Settings.JSON())
}

// String returns one line, one more about tasks without an assignee, and one for each variable that is sent.
func (c checkDocument) String() string {
	tasks := c.tasks
	if c.Goal {
		tasks = "a goal"
	}
	verdict := "ok"
	if !c.OK {
		verdict = "broken"
	}
	text := fmt.Sprintf("%s: %s: %s, %s, %s", c.File, verdict, tasks, format.Plural(c.Agents, "agent"), format.Plural(c.Inputs, "input"))
	if c.Tasks == 0 && !c.Goal {
		text += `; to run it without tasks, give a goal: "runteam run --goal TEXT"`
	}
	if n := len(c.Assertions); n > 0 {
		text += "; " + format.Plural(n, "assertion")
	}
	if n := len(c.Warnings); n > 0 {
		text += "; " + format.Plural(n, "warning")
	}
	if len(c.Assigned) > 0 {
		var all []string
		for _, t := range c.Assigned {
			all = append(all, t.Task+" to "+t.Assignee)
		}
		text += fmt.Sprintf("\n  assigned by %s, %s: %s", c.Strategy, why[assign.Strategy(c.Strategy)], format.List(all, 10))
	}
	if len(c.Environment) > 0 {
		var b strings.Builder
		source.WriteVariables(&b, c.Environment, "  ")
		text += "\n" + b.String()
	}
	return text
}

// agentsWithoutModel warns of agents without a model, and of a coordinator without one that has work
// to do: a run needs them unless it is offline. A spec without tasks and goal may get models where
// it is used.
func agentsWithoutModel(file *specfile.File) (found []specfile.Problem) {
	coordinated := file.Goal != nil || file.Run.Answer != nil
	if len(file.Tasks) == 0 && !coordinated {
		return nil
	}
	var names []string
	var first *specfile.Agent
	for i := range file.Agents {
		if ag := &file.Agents[i]; ag.Model == "" && ag.HasModel() {
			if names = append(names, fmt.Sprintf("%q", ag.Member.Name)); first == nil {
				first = ag
			}
		}
	}
	switch {
	case len(names) == 1:
		found = append(found, noModel(first.Member.Origin, fmt.Sprintf("agent %s has no model", names[0])))
	case len(names) > 1:
		found = append(found, noModel(first.Member.Origin, "agents "+format.List(names, 5)+" have no model"))
	}
	if coordinated && file.Coordinator.Connection.Model == "" {
		found = append(found, noModel(file.Coordinator.Origin, "the coordinator has no model"))
	}
	return found
}

func noModel(at provenance.Position, message string) specfile.Problem {
	return specfile.Problem{File: at.File, Line: at.Line, Column: at.Column, Message: message, Hint: "write model: in the spec, or give --model; --offline needs none"}
}
