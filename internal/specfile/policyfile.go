package specfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/policytext"
	"github.com/runteam/runteam/internal/workdir"
)

// LoadPolicy reads the policy of a file: a spec, or one that has the key policy and nothing else, whose
// names only the run can check. No variable needs to be set. [File.Locate] turns what a run finds wrong
// with it into places of the file. If the file has problems and no agents, members returns the names of the
// readers in the run, so that unknown names are among the problems; nil or none if they are not known.
func LoadPolicy(dir workdir.Dir, path string, stdin io.Reader, members func() []string) (*File, *handoff.Policy, error) {
	f, err := Load(Options{Dir: dir, Path: path, Stdin: stdin, Offline: true, policyAlone: true, members: members})
	if err != nil {
		return nil, nil, aboutPolicy(err)
	}
	if f.places.main.spec.get("policy") == nil {
		return nil, nil, &Error{[]Problem{{File: f.Path, Message: "there is no policy", Hint: "write one under the key policy, as in a spec file", Err: ErrInvalid}}}
	}
	p := f.Config.Policy
	if p == nil {
		p = &handoff.Policy{} // the key has no value
	}
	if _, err := policytext.Write(p); errors.Is(err, policytext.ErrTooLarge) {
		return nil, nil, &Error{[]Problem{{File: f.Path, Message: fmt.Sprint(err), Hint: "write fewer rules", Err: ErrInvalid}}}
	}
	return f, p, nil
}

// LoadPolicyText reads a policy that comes from elsewhere than this computer, as [LoadPolicy] does. Its text may have the key
// policy alone, so that it names no files and programs of this computer.
func LoadPolicyText(text []byte, members func() []string) (*File, *handoff.Policy, error) {
	src := newSource("-", "", string(text))
	if n, _ := parse(src); n != nil && n.is == isObject { // else nothing of it is used
		for i := range n.kids {
			if k := &n.kids[i]; k.key != "policy" {
				return nil, nil, &Error{locate([]finding{{src, k.keyAt, Problem{Message: fmt.Sprintf("%s: a policy has no other key", quote(k.key)), Hint: "send the policy alone", Err: ErrInvalid}}})}
			}
		}
	}
	return LoadPolicy("", "-", bytes.NewReader(text), members)
}

// AssertionsOf returns the assertions of a file as texts, in the order of the pointers /assert/0, /assert/1 and
// so on.
func AssertionsOf(f *File) []string {
	var texts []string
	for i := range f.Run.Assert {
		texts = append(texts, f.Run.Assert[i].String())
	}
	return texts
}

// aboutPolicy has problems with a file as a whole ask for a policy, and not for a team.
func aboutPolicy(err error) error {
	found, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	for i := range found.Problems {
		p := &found.Problems[i]
		what, isOther := strings.CutSuffix(p.Message, " where keys such as "+strings.Join(outermost("Path"), " and ")+" belong")
		switch {
		case errors.Is(p.Err, ErrNotFound):
			p.Message, p.Hint = strings.TrimPrefix(p.Message, ErrNotFound.Error()+": "), "name a spec file, or a file with the key policy"
		case isOther:
			p.Message, p.Hint = what+" where the key policy belongs", "write policy: …"
		case errors.Is(p.Err, errEmpty):
			p.Hint = "write policy: …"
		}
	}
	return err
}
