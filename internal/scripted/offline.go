package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/oneline"
)

// Mark says in an answer that no model wrote it.
const Mark = "OFFLINE"

// schemaHeading opens the part of a system prompt that holds the schema of the
// answer: one JSON document, to the end of the part.
const schemaHeading = "## Output schema"

// offline returns the answer to a prompt that no reply matches.
func (r *received) offline() string {
	if step := r.step(); step == Plan || step == Repair {
		if text, ok := r.offlinePlan(); ok {
			return text
		}
	}
	if schema, ok := r.schema(); ok {
		if text, err := json.Marshal(instance(schema)); err == nil {
			return string(text)
		}
	}
	var b strings.Builder
	b.WriteString(Mark + ": no model wrote this.")
	if r.Task != "" {
		b.WriteString(" Task: " + r.Task + ".")
	}
	sections := r.sections()
	if len(sections) == 0 {
		b.WriteString(" The prompt had no sections.")
		return b.String()
	}
	b.WriteString(" Sections received:\n")
	for _, s := range sections {
		b.WriteString("- " + s + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Bounds on an offline plan.
const (
	maxPlanned   = 3  // tasks
	maxGoalTitle = 60 // characters of the goal in a title
)

// offlinePlan returns a valid plan with a task for each of the first agents of the roster, of
// which the last depends on the others. Without a roster it returns false.
func (r *received) offlinePlan() (string, bool) {
	type planned struct {
		Title       string   `json:"title"`
		Description string   `json:"description"`
		Assignee    string   `json:"assignee"`
		DependsOn   []string `json:"dependsOn,omitempty"`
	}
	agents := r.roster()
	n := min(len(agents), maxPlanned)
	goal := oneline.Of(r.goal())
	tasks := make([]planned, n)
	var titles []string
	for i, agent := range agents[:n] {
		tasks[i] = planned{
			Title:       fmt.Sprintf("%s task %d of %d: %s", Mark, i+1, n, shortened(goal)),
			Description: fmt.Sprintf("%s: no model made this plan. Do what you can for this goal: %s", Mark, goal),
			Assignee:    agent,
		}
		if i == n-1 {
			tasks[i].DependsOn = titles
		}
		titles = append(titles, tasks[i].Title)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(tasks)
	return strings.TrimSpace(b.String()), err == nil && n > 0
}

// shortened cuts a line to fit into a title.
func shortened(line string) string {
	if utf8.RuneCountInString(line) <= maxGoalTitle {
		return line
	}
	return strings.TrimSpace(string([]rune(line)[:maxGoalTitle-1])) + "…"
}

// schema returns the schema in the system prompt, if it has one.
func (r *received) schema() (any, bool) {
	at := strings.LastIndex("\n"+r.System, "\n"+schemaHeading+"\n")
	if at < 0 {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(r.System[at+len(schemaHeading):]))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil, false
	}
	switch v.(type) {
	case map[string]any, bool:
		return v, true
	}
	return nil, false
}
