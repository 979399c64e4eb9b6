package specfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Inputs and paths of a saved plan, which may be in another folder than the spec.

// inputs writes the named inputs.
func (s *saver) inputs() *node {
	all := objectNode()
	for _, in := range s.p.inputs {
		n := objectNode()
		if path, given := s.p.options.Inputs[in.name]; given && strings.HasPrefix(path, ResultPrefix) {
			_, result, _ := strings.Cut(path, "/")
			from := objectNode()
			from.set("run", textNode(in.run))
			from.set("task", textNode(result))
			n.set("from", from)
		} else if from := in.fields.own("from"); from != nil && !given {
			n.set("from", from)
		} else if given && in.isFolder {
			n.set("dir", s.givenInput(in, path))
		} else if given {
			n.set("file", s.givenInput(in, path))
		} else if dir := in.fields.own("dir"); dir != nil {
			n.set("dir", s.path("input "+quote(in.name)+": dir", dir))
		} else if file := in.fields.own("file"); file != nil {
			n.set("file", s.path("input "+quote(in.name)+": file", file))
		} else {
			n.set("text", in.fields.own("text"))
		}
		for _, key := range []string{"exclude", "format", "classification", "ttlMs", "maxContextBytes", "cut"} {
			n.set(key, in.fields.own(key))
		}
		all.set(in.name, n)
	}
	return all.orNil()
}

// givenInput returns the path of an input that an option brought, if it is in
// the folder of the plan; else the option must bring it again.
func (s *saver) givenInput(in inputPlaceOf, path string) *node {
	if rel, err := s.relative(path); path != "-" && err == nil && !strings.Contains(rel, opening) {
		if err := s.checkThere(rel); err == nil {
			return textNode(rel)
		}
	}
	s.left = append(s.left, finding{in.src, in.key, Problem{
		Message: fmt.Sprintf("input %s: not saved: %s brought it from elsewhere", quote(in.name), s.p.options.called("Inputs")), Hint: "give " + s.p.options.inputOption(in.name) + " again",
	}})
	return nil
}

// path writes a path of the spec relative to the folder of the plan. If it contains a
// variable, only the path between the folders is added.
func (s *saver) path(what string, n *node) *node {
	variable := strings.Contains(n.text, opening)
	given := filepath.Join(n.src.dir, n.text)
	if variable {
		given = n.src.dir
	}
	rel, err := s.relative(given)
	switch {
	case err == nil && !variable && strings.Contains(rel, opening):
		err = errors.New("a folder on the way is called ${…, which a spec would take for a variable")
	case err == nil && !variable:
		err = s.checkThere(rel)
	}
	if err != nil {
		s.found = append(s.found, finding{n.src, n.at, Problem{
			Message: fmt.Sprintf("%s: %s: cannot be named from %s, the folder of the plan: %v", what, quote(n.text), quote(s.dir), err),
			Hint:    "save the plan beside " + filepath.Base(n.src.path), Err: ErrRead,
		}})
		return n
	}
	if variable && rel != "." {
		rel += "/" + n.text
	} else if variable {
		rel = n.text
	}
	return textNode(rel)
}

// relative returns a path relative to the folder of the plan, which must contain it.
func (s *saver) relative(path string) (string, error) {
	rel, err := s.relativeToPlan(path)
	if err == nil && !filepath.IsLocal(rel) {
		err = errors.New("it lies outside")
	}
	return rel, err
}

// checkThere returns why a file or a folder of the folder of the plan cannot be read.
func (s *saver) checkThere(rel string) error {
	f, err := openInside(s.p.options.Dir, s.dir, rel)
	if errors.Is(err, errFolder) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}
