package specfile

import "github.com/runteam/runteam/label"

// Declared is what may be given to a spec when it is run.
type Declared struct {
	Name   string // of the team; may be empty
	Path   string // as given or found
	Inputs []DeclaredInput
	Params []DeclaredParam
	Goal   bool // it has no tasks, so that a goal is planned
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

// Declare returns what may be given to a spec, and like [Load] everything that is wrong with it
// otherwise, which includes what must be given and is not. The former is nil if the spec cannot be read.
func Declare(o Options) (*Declared, error) {
	r := newReader(o)
	r.read()
	var err error
	if len(r.found) > 0 {
		err = &Error{Problems: locate(r.found)}
	}
	main := r.places.main
	if main == nil || main.spec == nil {
		return nil, err
	}
	d := &Declared{Name: r.file.Name, Path: r.file.Path, Goal: len(r.file.Tasks) == 0}
	labels := map[string]label.Classification{}
	for i := range r.file.Run.Inputs {
		labels[r.file.Run.Inputs[i].Name] = r.file.Run.Inputs[i].Classification
	}
	if n := main.spec.own("inputs"); n != nil {
		for _, in := range n.parts() {
			has := false
			for _, key := range []string{"file", "text", "from", "dir"} {
				has = has || in.is == isObject && in.get(key) != nil
			}
			d.Inputs = append(d.Inputs, DeclaredInput{in.key, labels[in.key], has})
		}
	}
	for _, y := range r.places.layers {
		if n := y.spec.own("params"); n != nil {
			for _, p := range n.parts() {
				d.Params = append(d.Params, DeclaredParam{p.key, p.is != isNull})
			}
		}
	}
	return d, err
}
