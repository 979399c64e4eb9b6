package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A subject is what problems are about: a value of a team file, with the name that messages
// have for it.
type subject struct {
	found   *task.Problems // where the problems are collected
	pointer string
	name    string // empty for the run as a whole
}

// at returns the subject for a value below this one.
func (s subject) at(tokens ...any) subject {
	s.pointer += naming.Pointer(tokens...)
	return s
}

// report adds a problem.
func (s subject) report(message, hint string, err error) {
	*s.found = append(*s.found, task.Problem{Pointer: s.pointer, Subject: s.name, Message: message, Hint: hint, Err: err})
}

// checkLabel reports a value that is no label.
func (s subject) checkLabel(level label.Classification) {
	if !level.Valid() {
		s.report("unknown label", "write one of "+strings.Join(label.Classifications(), ", "), label.ErrUnknown)
	}
}

// checkSign reports a negative limit, which is named as what it bounds: the caller may be a
// program or a spec.
func (s subject) checkSign(what string, n int64) {
	if n < 0 {
		s.report(what+" is negative", "use a positive one, or leave it out for no limit", task.ErrInvalid)
	}
}

// checkBudget reports budgets that are negative.
func (s subject) checkBudget(b Budget) {
	s.at("maxTokenBudget").checkSign("the token budget", int64(b.MaxTokenBudget))
	s.at("maxCostBudget").checkSign("the cost budget", int64(b.MaxCostBudget))
}

// checkLimits reports size limits that are out of bounds.
func (s subject) checkLimits(l Limits) {
	s.checkSize("maxContextBytes", "the context limit", l.MaxContextBytes, gate.MaxRedact)
	s.checkSize("maxPromptBytes", "the prompt limit", l.MaxPromptBytes, brief.MaxBytes)
}

// checkSize reports a size limit that is out of bounds.
func (s subject) checkSize(key, what string, bytes, most int) {
	if bytes < 0 || bytes > most {
		s.at(key).report(fmt.Sprintf("%s is %d bytes, and must be from 1 to %d", what, bytes, most), "leave it out for the default", task.ErrInvalid)
	}
}

// findings are what the checks of one set of tasks found.
type findings struct {
	found  task.Problems
	advice task.Problems // warnings, which keep no run from starting
}

func (f *findings) add(p task.Problem) { f.found = append(f.found, p) }

// about returns the subject with this name at a pointer.
func (f *findings) about(name string, tokens ...any) subject {
	return subject{&f.found, naming.Pointer(tokens...), name}
}

// at returns the run as the subject of problems at a pointer.
func (f *findings) at(tokens ...any) subject { return f.about("", tokens...) }

// aboutTask returns task i as a subject.
func (f *findings) aboutTask(i int, s *task.Spec) subject {
	return f.about(fmt.Sprintf("task %q", s.Title), "tasks", i)
}

// advise adds a warning about a subject.
func (f *findings) advise(about subject, message, hint string) {
	about.found = &f.advice
	about.report(message, hint, nil)
}

// sorted returns the problems in the order of the tasks, and within a task as found.
func (f *findings) sorted() error {
	slices.SortStableFunc(f.found, func(a, b task.Problem) int { return naming.TaskIndex(a.Pointer) - naming.TaskIndex(b.Pointer) })
	return f.found
}
