package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/scripted"
	"github.com/runteam/runteam/spec"
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
func (j *job) recording(cmd *cobra.Command, file *spec.File) (*recording, error) {
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
	var text bytes.Buffer
	_, err := r.models.WriteTo(&text)
	if errors.Is(err, scripted.ErrTooLarge) {
		r.beside = err
	} else if err != nil {
		return fmt.Errorf("--record %s: %w", r.file.path, err)
	}
	return r.file.write(text.Bytes())
}

// String says what to do with the file.
func (r *recording) String() string {
	text := fmt.Sprintf("%s in %s", plural(len(r.models.Script().Replies), "answer"), cleanLine(r.file.path))
	if r.beside != nil {
		return text + "; " + r.beside.Error()
	}
	return fmt.Sprintf("%s; the same command with --offline --script %s gives this result again", text, shellWord(r.file.path))
}
