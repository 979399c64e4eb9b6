package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/specfile"
)

// maxToolName is how long the name of a tool may be. The protocol allows more, many clients do not.
const maxToolName = 64

// goalArgument is the argument for the goal.
const goalArgument = "goal"

// A tool is a spec that is offered.
type tool struct {
	name     string
	path     string
	declared *specfile.Declared
}

// loadTools reads the specs, and refuses those that cannot be offered together.
func loadTools(ctx context.Context, con *console.Console, specs []string, base *run.Launch) ([]*tool, error) {
	byName := map[string]*tool{}
	var all []*tool
	for _, path := range specs {
		if path == "-" {
			return nil, exit.Usagef("SPEC -: standard input is for the MCP client: name a file or a folder")
		}
		spec := base.Spec
		spec.Path, spec.NoCalls, spec.CallsTools, spec.Results = path, base.Answers.Offline, true, base.Journal.Results(con)
		d, err := spec.Declare(ctx, con)
		if err != nil {
			return nil, err
		}
		t := &tool{name: toolName(d.Name), path: path, declared: d}
		if t.name == "" {
			return nil, exit.Usagef("%s: no tool can have its name %q: write a name with letters from a to z or digits", path, d.Name)
		}
		if other := byName[t.name]; other != nil {
			return nil, exit.Usagef("%s and %s would both be the tool %s: change the name of one of them", other.path, path, t.name)
		}
		if err := t.checkArguments(); err != nil {
			return nil, err
		}
		byName[t.name] = t
		all = append(all, t)
	}
	return all, nil
}

// toolName returns the name of a spec with only characters that names of tools may have; empty if no
// letter or digit is left.
func toolName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, strings.TrimSpace(name))
	if strings.Trim(name, "_-") == "" {
		return ""
	}
	return name[:min(len(name), maxToolName)]
}

// checkArguments returns an error if two arguments of the tool would have one name.
func (t *tool) checkArguments() error {
	kinds := map[string]string{}
	if t.declared.Goal {
		kinds[goalArgument] = "the goal"
	}
	add := func(kind, name string) error {
		if other, clash := kinds[name]; clash {
			return exit.Usagef("%s: %s %q and %s would be one argument of the tool: rename one of them", t.path, kind, name, other)
		}
		kinds[name] = "the " + kind
		return nil
	}
	for _, in := range t.declared.Inputs {
		if err := add("input", in.Name); err != nil {
			return err
		}
	}
	for _, p := range t.declared.Params {
		if err := add("parameter", p.Name); err != nil {
			return err
		}
	}
	return nil
}

// definition returns what clients read about the tool.
func (t *tool) definition() *sdk.Tool {
	return &sdk.Tool{
		Name: t.name, Title: terminal.CleanLine(t.declared.Name), Description: t.description(), InputSchema: t.schema(),
		Annotations: &sdk.ToolAnnotations{Title: terminal.CleanLine(t.declared.Name)},
	}
}

// maxListed is how many tasks a description names.
const maxListed = 12

// description returns that of the spec, or the tasks of the team.
func (t *tool) description() string {
	switch o := t.declared; {
	case o.Description != "":
		return terminal.Clean(o.Description)
	case len(o.Tasks) > 0:
		return fmt.Sprintf("Runs the team %q, which does these tasks: %s.", terminal.CleanLine(o.Name), format.List(o.Tasks, maxListed))
	default:
		return fmt.Sprintf("Runs the team %q, which plans tasks for a goal and answers it.", terminal.CleanLine(o.Name))
	}
}

// A schema is the part of JSON Schema that arguments need.
type schema struct {
	Type        string             `json:"type"`
	Description string             `json:"description,omitempty"`
	MinLength   int                `json:"minLength,omitempty"`
	Properties  map[string]*schema `json:"properties,omitzero"` // OpenAI refuses an object without properties, even if it has none
	Required    []string           `json:"required,omitempty"`
	Additional  *bool              `json:"additionalProperties,omitempty"`
}

// schema returns the JSON Schema of the arguments.
func (t *tool) schema() *schema {
	s := &schema{Type: "object", Properties: map[string]*schema{}, Additional: new(false)}
	add := func(name, description string, hasDefault bool) {
		if hasDefault {
			description += "; the team has one of its own"
		} else {
			s.Required = append(s.Required, name)
		}
		s.Properties[name] = &schema{Type: "string", Description: description}
	}
	if t.declared.Goal {
		add(goalArgument, "What the team should find out or produce", t.declared.GoalDefault)
		s.Properties[goalArgument].MinLength = 1
	}
	for _, in := range t.declared.Inputs {
		add(in.Name, "A text, which the team treats as "+in.Classification.String(), in.HasDefault)
		s.Properties[in.Name].MinLength = 1
	}
	for _, p := range t.declared.Params {
		add(p.Name, "One line", p.HasDefault)
	}
	return s
}

// fill gives the arguments of a call to the run. The error says what to write.
func (t *tool) fill(l *run.Launch, arguments json.RawMessage) error {
	values, err := t.values(arguments)
	if err != nil {
		return err
	}
	take := func(name string, hasDefault bool) (value string, given bool) {
		value, given = values[name]
		delete(values, name)
		if !given && !hasDefault && err == nil {
			err = fmt.Errorf("argument %q is missing: give a text", name)
		}
		return value, given
	}
	l.Spec.Path, l.Spec.Params, l.Texts = t.path, nil, map[string]string{}
	if t.declared.Goal {
		if goal, given := take(goalArgument, t.declared.GoalDefault); given {
			l.Spec.Goal = source.GoalFlag{Text: goal, Given: true, Literal: true}
		}
	}
	for _, in := range t.declared.Inputs {
		if text, given := take(in.Name, in.HasDefault); given {
			l.Texts[in.Name] = text
		}
	}
	for _, p := range t.declared.Params {
		if value, given := take(p.Name, p.HasDefault); given {
			l.Spec.Params = append(l.Spec.Params, p.Name+"="+value)
		}
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		return fmt.Errorf("unknown argument %q: %s", terminal.CleanLine(name), t.known())
	}
	return nil
}

// values reads the arguments, all of which are texts.
func (t *tool) values(arguments json.RawMessage) (map[string]string, error) {
	if len(arguments) == 0 {
		return map[string]string{}, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &given); err != nil {
		return nil, fmt.Errorf("the arguments are no JSON object: %s", t.known())
	}
	if err := jsontext.NewDecoder(bytes.NewReader(arguments)).SkipValue(); errors.Is(err, jsontext.ErrDuplicateName) {
		return nil, errors.New("an argument is given twice: leave one of them out")
	}
	values := make(map[string]string, len(given))
	for name, raw := range given {
		var text *string
		if err := json.Unmarshal(raw, &text); err != nil || text == nil {
			return nil, fmt.Errorf("argument %q is no string: write it as a JSON string", terminal.CleanLine(name))
		}
		values[name] = *text
	}
	return values, nil
}

// known says which arguments the tool takes.
func (t *tool) known() string {
	var names []string
	if t.declared.Goal {
		names = append(names, goalArgument)
	}
	for _, in := range t.declared.Inputs {
		names = append(names, in.Name)
	}
	for _, p := range t.declared.Params {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return "the tool takes no arguments"
	}
	return "the tool takes " + format.List(names, maxListed)
}
