package specfile

import "fmt"

// policyFields returns the keys of a policy, which may be in a file of its own; nil after reporting why there are none.
func (r *reader) policyFields(n *node) *fields {
	f := r.fields(n, "policy", nil)
	path := f.own("file")
	if path == nil {
		return f
	}
	if n.len() > 1 {
		for _, other := range n.parts() {
			if other.key != "file" {
				r.badKey(other, ErrInvalid, "write it in the file, or leave file out", "%s: the policy is in a file of its own", other.key)
			}
		}
		return f // what else is wrong with them is reported too
	}
	if r.o.policyAlone {
		r.bad(path, "give that file itself", "file: a policy that replaces another one names no file")
		return nil
	}
	src := r.readFile(path, maxText)
	if src == nil {
		return nil
	}
	r.named[n] = src
	tree := r.parsed(src)
	if tree == nil {
		return nil
	}
	policy := tree.get("policy")
	if policy == nil {
		r.bad(tree, "write policy: and the rules below it", "there is no policy")
		return nil
	}
	for _, other := range tree.parts() {
		if other.key != "policy" {
			r.badKey(other, ErrInvalid, "move it to the spec", "%s: a file with a policy has no other key", other.key)
		}
	}
	if policy.get("file") != nil {
		r.bad(policy.get("file"), "write the rules", "file: a file with a policy names no other file")
		return nil
	}
	r.places.policyFile = src
	return r.fields(policy, "policy", nil)
}

// A DeclaredPolicy is a policy that a spec keeps in a file of its own.
type DeclaredPolicy struct {
	Path string // of the file, as given or found
	JSON []byte // the value of its key policy
}

// declaredPolicy returns the policy that is in a file of its own; nil if none is.
func (f *File) declaredPolicy() (*DeclaredPolicy, error) {
	src := f.places.policyFile
	if src == nil {
		return nil, nil
	}
	text, err := f.places.policy.appendJSON(nil)
	return &DeclaredPolicy{src.path, text}, err
}

// PolicyFile returns the text of a file with a policy, which is given as JSON.
func PolicyFile(policy []byte) ([]byte, error) {
	n, bad := parse(newSource("policy.json", "", string(policy)))
	if n == nil || len(bad) > 0 {
		return nil, fmt.Errorf("%w: it is not JSON", ErrSyntax)
	}
	file := objectNode()
	file.set("policy", n)
	return emit(file)
}
