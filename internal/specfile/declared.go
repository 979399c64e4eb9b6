package specfile

import (
	"context"

	"github.com/runteam/runteam/label"
)

// Declared is what may be given to a spec when it is run.
type Declared struct {
	File        *File  // with no text for inputs, and no value for parameters, that have none
	Name        string // of the team
	Path        string // as given or found
	Description string // what the team does; may be empty
	Tasks       []string
	Inputs      []DeclaredInput // those that a text can replace, in the order written
	Params      []DeclaredParam // by name

	Policy *DeclaredPolicy // if it is in a file of its own
	Chat   *Chat           // nil without the key chat

	Goal        bool // it has no tasks, so that a goal is planned
	GoalDefault bool // it has that goal
}

// A DeclaredInput is an input that a spec declares.
type DeclaredInput struct {
	Name           string
	Classification label.Classification
	HasDefault     bool // it needs no text from outside
}

// A DeclaredParam is a parameter that a spec declares.
type DeclaredParam struct {
	Name       string
	HasDefault bool
}

// Declare returns what may be given to a spec. The error is that of [Load] with a text for each input
// and a value for each parameter: everything else that is wrong. Inputs that are folders are left out,
// since a text cannot replace one.
func Declare(ctx context.Context, o Options) (*Declared, error) {
	o.unbound = true
	f, err := LoadContext(ctx, o)
	if err != nil {
		return nil, err
	}
	d := &Declared{File: f, Name: f.Name, Path: f.Path, Description: f.Description, Goal: len(f.Tasks) == 0, GoalDefault: f.Goal != nil, Chat: f.Chat}
	if d.Policy, err = f.declaredPolicy(); err != nil {
		return nil, err
	}
	for i := range f.Tasks {
		d.Tasks = append(d.Tasks, f.Tasks[i].Title)
	}
	for i := range f.Run.Inputs {
		if in := &f.Run.Inputs[i]; in.Folder == nil && !f.places.inputs[i].isFolder {
			d.Inputs = append(d.Inputs, DeclaredInput{in.Name, in.Classification, in.Text != "" || in.Envelope != nil})
		}
	}
	for _, name := range sortedKeys(f.places.params) {
		d.Params = append(d.Params, DeclaredParam{name, !f.places.params[name].unset})
	}
	return d, nil
}
