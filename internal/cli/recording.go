package cli

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/team"
)

// recording keeps what the models of a run answer, as a script. A nil
// *recording keeps nothing.
type recording struct {
	file   *newFile
	models *scripted.Recorder
	beside error // what is worth knowing of the file that was written
}

// recording returns what keeps the answers of a run, if flags ask for it, and
// refuses a file that could not be written when the run has ended.
func (j *job) recording(cmd *cobra.Command, file *specfile.File) (*recording, error) {
	if !cmd.Flags().Changed("record") {
		return nil, nil
	}
	if err := j.record.check(append(j.reads(file), j.scriptOf(file))...); err != nil {
		return nil, err
	}
	return &recording{file: &j.record, models: &scripted.Recorder{}}, nil
}

// of returns a model whose answers are kept.
func (r *recording) of(m llm.Model) llm.Model {
	if r == nil {
		return m
	}
	return r.models.Model(m)
}

// keep writes what was answered. What is too large to be read as one script is
// written all the same, and said.
func (r *recording) keep() error {
	if r == nil {
		return nil
	}
	if r.empty() {
		return nil // it would take the place of a recording that says something
	}
	var text bytes.Buffer
	_, err := r.models.WriteTo(&text)
	if errors.Is(err, scripted.ErrTooLarge) {
		r.beside = err
	} else if err != nil {
		return fmt.Errorf("--record %s: %w", r.file.path, err)
	}
	return r.file.write(text.Bytes())
}

// empty reports whether nothing was answered.
func (r *recording) empty() bool { return len(r.models.Script().Replies) == 0 }

// summary says what is in the file, or why there is none, and, if the run came to its end by itself,
// how to have it again.
func (r *recording) summary(res *team.Result) string {
	if r.empty() {
		return "nothing was answered, so nothing was recorded"
	}
	text := fmt.Sprintf("recorded: %s in %s", plural(len(r.models.Script().Replies), "answer"), cleanLine(r.file.path))
	switch {
	case r.beside != nil:
		return text + "; " + r.beside.Error()
	case res.Cause != nil: // what was still to come may be asked for again, and is not in it
		return text
	}
	without := "--record"
	if r.file.force {
		without += " and --force"
	}
	return fmt.Sprintf("%s; to replay it: the same command without %s, with --offline --script %s", text, without, shellWord(r.file.path))
}
