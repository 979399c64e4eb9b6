package specfile

import "github.com/runteam/runteam/label"

// An Outline says what a spec does and what its caller may give. Its JSON is part of the API of
// runteam serve.
type Outline struct {
	Name        string         `json:"name"`
	Path        string         `json:"path"`
	Description string         `json:"description,omitempty"`
	Inputs      []OutlineInput `json:"inputs"` // those that a text can replace, in the order written
	Params      []OutlineParam `json:"params"` // by name

	Goal        bool `json:"goal"`                  // it takes a goal
	GoalDefault bool `json:"goalDefault,omitempty"` // it has a goal of its own

	Tasks []string `json:"-"` // titles, as written
}

// An OutlineInput is an input of a spec.
type OutlineInput struct {
	Name           string               `json:"name"`
	Classification label.Classification `json:"classification"`
	HasDefault     bool                 `json:"hasDefault"` // the spec has a text for it
}

// An OutlineParam is a parameter of a spec.
type OutlineParam struct {
	Name       string `json:"name"`
	HasDefault bool   `json:"hasDefault"` // the spec has a value for it
}

// Outline returns what a caller of f may give, if f was loaded with Options.Unbound and without
// values. Folders are left out, since a text cannot replace one. A spec with tasks takes no
// goal, since a goal would replace them.
func (f *File) Outline() *Outline {
	o := &Outline{
		Name: f.Name, Path: f.Path, Description: f.Description, Inputs: []OutlineInput{}, Params: []OutlineParam{},
		Goal: len(f.Tasks) == 0, GoalDefault: f.Goal != nil,
	}
	for i := range f.Run.Inputs {
		in, place := &f.Run.Inputs[i], &f.places.inputs[i]
		if in.Folder != nil || place.isFolder {
			continue
		}
		o.Inputs = append(o.Inputs, OutlineInput{in.Name, in.Classification, in.Text != "" || in.Envelope != nil})
	}
	for _, name := range sortedKeys(f.places.params) {
		o.Params = append(o.Params, OutlineParam{name, !f.places.params[name].unset})
	}
	for i := range f.Tasks {
		o.Tasks = append(o.Tasks, f.Tasks[i].Title)
	}
	return o
}
