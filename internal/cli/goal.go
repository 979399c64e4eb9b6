package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/specfile"
)

// goalFlag is what --goal asks for. It tells an empty text from none.
type goalFlag struct {
	text  string
	given bool
	fixed bool // the text is the goal itself, whatever it looks like
}

func (g *goalFlag) String() string { return g.text }

// Set takes what stands behind the flag.
func (g *goalFlag) Set(text string) error {
	g.text, g.given = text, true
	return nil
}

// Type names the value in help texts.
func (g *goalFlag) Type() string { return "TEXT" }

// maxGoalInput bounds a goal from standard input: what is too long for a
// coordinator, but not for memory, is refused with its size.
const maxGoalInput = 16 << 20

// read returns the goal, from standard input if it is a hyphen; empty if none is given.
// It may be called again.
func (g *goalFlag) read(stdin io.Reader) (string, error) {
	if !g.given {
		return "", nil
	}
	text, name := g.text, "--goal"
	if text == "-" && !g.fixed {
		data, err := io.ReadAll(io.LimitReader(stdin, maxGoalInput+1))
		if err != nil {
			return "", &fault{kind: kindIO, err: fmt.Errorf("--goal -: %w", err)}
		}
		if len(data) > maxGoalInput {
			return "", usageError("--goal -: more than %d MiB: give long texts as inputs", maxGoalInput>>20)
		}
		text, name = string(data), "--goal -"
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", usageError("%s is empty: say what the team is to find out or to make", name)
	}
	g.text, g.fixed = text, true
	return text, nil
}

// nothingTo says what a spec lacks that has neither tasks nor a goal.
func nothingTo(do string, s *source, file *specfile.File) error {
	if do == "run" && s.team != "" && s.path == "" {
		return usageError(`--goal is missing: --team F brings a team, and --goal TEXT what it is to do; to run a list of tasks write "runteam task --file F --team F"`)
	}
	return &specfile.Error{Problems: []specfile.Problem{{
		File: file.Path, Message: "it has neither tasks nor a goal, so there is nothing to " + do, Hint: "add --goal TEXT, or write tasks: or goal:",
	}}}
}
