package plan

import (
	"cmp"
	"context"
	"errors"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/spf13/cobra"
)

// chatFlags have plan show a turn of a session.
type chatFlags struct {
	label string
	level label.Classification // of what the person says
}

func (c *chatFlags) addTo(cmd *cobra.Command, s *source.SpecFlags) {
	f := cmd.Flags()
	f.BoolVar(&s.Chat, "chat", false, "show a turn of runteam chat in place of the tasks: what the agent gets of earlier turns, and where it can go")
	f.StringVar(&s.Agent, "agent", "", "with --chat: the agent `NAME` answers (default: chat.agent of the spec, else the coordinator)")
	f.StringVar(&c.label, "label", label.Internal.String(), "with --chat: the `LABEL` of what you write: public, internal, confidential or secret")
	flags.Complete(cmd, "label", label.Classifications())
}

// check refuses flags that do not fit together.
func (c *chatFlags) check(cmd *cobra.Command, s *source.SpecFlags) (err error) {
	changed := cmd.Flags().Changed
	for _, flag := range []string{"agent", "label"} {
		if changed(flag) && !s.Chat {
			return exit.Usagef("--%s is for a chat: add --chat", flag)
		}
	}
	if s.Chat && changed("save") {
		return exit.Usagef("--save writes planned tasks, and a chat has none: leave out --save or --chat")
	}
	if c.level, err = label.ParseClassification(c.label); err != nil {
		return exit.UnknownWord("--label", c.label, label.Classifications())
	}
	return nil
}

// setTurn makes a spec that was read for a chat that of a turn. A coordinator plans the goal of the flag.
func (c *chatFlags) setTurn(file *specfile.File, s *source.SpecFlags) error {
	switch {
	case !s.Chat:
		return nil
	case file.Answerer != handoff.Coordinator && s.Goal.Given:
		return exit.Usagef("--goal is for the coordinator, and %s answers in this chat: leave it out", file.Answerer)
	case file.Answerer == handoff.Coordinator && !s.Goal.Given:
		return exit.Usagef("the coordinator answers in this chat, and plans each turn: add --goal TEXT with what you would write")
	}
	text := cmp.Or(s.Goal.Text, "What you write.")
	file.Run.Turn = &record.SessionTurn{Turn: 2, Agent: file.Answerer, Label: c.level, Text: text}
	source.SetTurn(file)
	return nil
}

// planChat returns the plan of a turn that has an earlier one.
func planChat(ctx context.Context, con *console.Console, j *planFlags, file *specfile.File) (*engine.Plan, error) {
	var first *engine.Plan
	var err error
	if file.Goal != nil {
		first, err = planGoal(ctx, con, j, file)
	} else {
		first, err = checkedPlan(ctx, con, file)
	}
	if err != nil {
		return nil, err
	}
	p, err := files.Await(ctx, func() (*engine.Plan, error) { return engine.PlanLaterTurn(first, file.Answerer) })
	return p, file.Locate(err)
}

// chatFindings checks the assertions of a spec for a turn of its chat that has an earlier one. What a
// coordinator would plan is not known.
func chatFindings(ctx context.Context, con *console.Console, s *source.SpecFlags, file *specfile.File) ([]engine.Finding, error) {
	if len(file.Run.Assert) == 0 || file.Chat == nil || file.Chat.Agent == "" || file.Chat.Agent == handoff.Coordinator {
		return nil, nil
	}
	own, chat := *s, chatFlags{level: label.Internal}
	own.Chat, own.Goal = true, source.GoalFlag{}
	turn, err := own.Load(ctx, con)
	if err != nil {
		return nil, err
	}
	if err := chat.setTurn(turn, &own); err != nil {
		return nil, err
	}
	p, err := planChat(ctx, con, nil, turn)
	if err != nil {
		return nil, err
	}
	return p.Findings, nil
}

// checkedPlan plans the tasks of a spec without a key, a network or a model, and checks its
// assertions. The plan of a spec without tasks is nil. For a goal, everything is checked except the
// coordinator's answer.
func checkedPlan(ctx context.Context, con *console.Console, file *specfile.File) (*engine.Plan, error) {
	t, err := connect.BuildTeam(file, connect.Unconnected(con.LookupEnv))
	if err != nil {
		return nil, err
	}
	plan, err := files.Await(ctx, func() (*engine.Plan, error) { // Plan takes no context, and patterns of a policy may be slow
		switch {
		case file.Goal != nil:
			_, err := t.PlanTeam(ctx, *file.Goal, &file.Run)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if _, called := errors.AsType[*engine.TaskError](err); called { // everything is right up to the call of the coordinator
				return nil, nil
			}
			return nil, err
		case len(file.Tasks) > 0:
			return t.Plan(file.Tasks, &file.Run)
		}
		return nil, nil
	})
	return plan, file.Locate(err)
}
