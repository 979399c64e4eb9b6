package source

import (
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/specfile"
)

// A GoalFlag is the value of --goal. An empty text differs from no flag.
type GoalFlag struct {
	Text    string
	Given   bool
	Literal bool // a text of - is the goal itself
}

// String returns the goal.
func (g *GoalFlag) String() string { return g.Text }

// Set sets the value of the flag.
func (g *GoalFlag) Set(text string) error {
	g.Text, g.Given = text, true
	return nil
}

// Type returns the name of the value in help texts.
func (g *GoalFlag) Type() string { return "TEXT" }

// maxGoalInput bounds a goal from standard input, in bytes. The limit for a coordinator is lower, and
// its error names the size.
const maxGoalInput = 16 << 20

// read returns the goal, from standard input if the text is a hyphen, and "" without --goal. It may be
// called again. Messages name the goal as called.
func (g *GoalFlag) read(called string, stdin io.Reader) (string, error) {
	if !g.Given {
		return "", nil
	}
	text, name := g.Text, called
	if text == "-" && !g.Literal {
		data, err := io.ReadAll(io.LimitReader(stdin, maxGoalInput+1))
		if err != nil {
			return "", exit.Errorf(exit.KindIO, "--goal -: %w", err)
		}
		if len(data) > maxGoalInput {
			return "", exit.Usagef("--goal -: more than %d MiB: move long texts to inputs", maxGoalInput>>20)
		}
		text, name = string(data), "--goal -"
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", exit.Usagef("%s is empty: write what the team should find out or produce", name)
	}
	g.Text, g.Literal = text, true
	return text, nil
}

// NothingToDo returns the error for a spec that has neither tasks nor a goal.
func NothingToDo(do string, s *SpecFlags, file *specfile.File) error {
	if do == "run" && s.Team != "" && s.Path == "" {
		return exit.Usagef(`--goal is missing: with --team F, say what the team should do with --goal TEXT; to run a list of tasks write "runteam task --file F --team F"`)
	}
	hint := "add --goal TEXT, or write tasks: or goal:"
	switch {
	case file.Chat != nil && do == "plan":
		hint = "add --chat for a turn of its chat, or --goal TEXT"
	case file.Chat != nil && do == "run":
		hint = "write runteam chat for its chat, or add --goal TEXT"
	}
	return &specfile.Error{Problems: []specfile.Problem{{
		File: file.Path, Message: "it has neither tasks nor a goal, so there is nothing to " + do, Hint: hint,
	}}}
}
