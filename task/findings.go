package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/naming"
)

// findings collects problems from several passes over the tasks.
type findings struct {
	list []finding
}

type finding struct {
	task int
	Problem
}

func (f *findings) add(task int, p Problem) { f.list = append(f.list, finding{task, p}) }

// err returns all problems in the order of the text, or nil.
func (f *findings) err() error {
	slices.SortStableFunc(f.list, func(a, b finding) int { return a.task - b.task })
	var problems Problems
	for _, one := range f.list {
		problems = append(problems, one.Problem)
	}
	return problems.Err()
}

// subject names task i in a problem.
func subject(i int, title string) string {
	if title = strings.TrimSpace(title); title == "" {
		return fmt.Sprintf("task %d", i+1)
	}
	return "task " + naming.Quote(title)
}

// pointer returns the RFC 6901 pointer to a part of task i.
func pointer(i int, path ...any) string {
	return naming.Pointer(append([]any{"tasks", i}, path...)...)
}
