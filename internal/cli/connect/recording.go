package connect

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
)

// Recording keeps what the models of a run answer, as a script. A nil
// *recording keeps nothing.
type Recording struct {
	File   *files.Output
	Models *scripted.Recorder
	note   error // what is worth knowing of the file that was written
}

// record returns a model whose answers are kept.
func (r *Recording) record(m llm.Model) llm.Model {
	if r == nil {
		return m
	}
	return r.Models.Model(m)
}

// Save writes what was answered. What is too large to be read as one script is
// written all the same, and said.
func (r *Recording) Save() error {
	if r == nil {
		return nil
	}
	if r.Empty() {
		return nil // it would take the place of a recording that says something
	}
	var text bytes.Buffer
	_, err := r.Models.WriteTo(&text)
	if errors.Is(err, scripted.ErrTooLarge) {
		r.note = err
	} else if err != nil {
		return fmt.Errorf("--record %s: %w", r.File.Path, err)
	}
	return r.File.Write(text.Bytes())
}

// Empty reports whether nothing was answered.
func (r *Recording) Empty() bool { return len(r.Models.Script().Replies) == 0 }

// Summary says what is in the file, or why there is none, and, if the run came to its end by itself,
// how to have it again.
func (r *Recording) Summary(res *engine.Result) string {
	if r.Empty() {
		return "nothing was answered, so nothing was recorded"
	}
	text := fmt.Sprintf("recorded: %s in %s", format.Plural(len(r.Models.Script().Replies), "answer"), terminal.CleanLine(r.File.Path))
	switch {
	case r.note != nil:
		return text + "; " + r.note.Error()
	case res.Cause != nil: // what was still to come may be asked for again, and is not in it
		return text
	}
	without := "--record"
	if r.File.Force {
		without += " and --force"
	}
	return fmt.Sprintf("%s; to replay it: the same command without %s, with --offline --script %s", text, without, format.ShellPath(r.File.Path))
}
