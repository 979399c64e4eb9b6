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

// A Recording collects the answers of the models of a run as a script. A nil *Recording collects
// nothing.
type Recording struct {
	File   *files.Output
	Models *scripted.Recorder
	note   error // a warning about the file that was written
}

// record returns a model whose answers are recorded.
func (r *Recording) record(m llm.Model) llm.Model {
	if r == nil {
		return m
	}
	return r.Models.Model(m)
}

// Save writes the answers. A script that is too large to be read again is written with a warning.
func (r *Recording) Save() error {
	if r == nil || r.Empty() { // an empty recording must not replace another one
		return nil
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

// Empty reports whether there are no answers.
func (r *Recording) Empty() bool { return len(r.Models.Script().Replies) == 0 }

// Summary says what is in the file, or why there is none, and how to replay it if the run was not
// interrupted.
func (r *Recording) Summary(res *engine.Result) string {
	if r.Empty() {
		return "nothing was answered, so nothing was recorded"
	}
	text := fmt.Sprintf("recorded: %s in %s", format.Plural(len(r.Models.Script().Replies), "answer"), terminal.CleanLine(r.File.Path))
	switch {
	case r.note != nil:
		return text + "; " + r.note.Error()
	case res.Cause != nil: // a replay may need answers that are missing
		return text
	}
	without := "--record"
	if r.File.Force {
		without += " and --force"
	}
	return fmt.Sprintf("%s; to replay it: the same command without %s, with --offline --script %s", text, without, format.ShellPath(r.File.Path))
}
