package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/naming"
)

// maxPaths bounds in how many ways a schema may apply to one and the same
// place of a value: each is walked, and nobody can stop the validator.
const maxPaths = 10_000

// inPlace are the keywords whose schemas apply to the value itself and not to
// a part of it.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}

// checkRecursion refuses a schema that applies to a place of a value without
// an end, or in too many ways. References have been checked to stay inside.
func checkRecursion(root any) error {
	w := &walker{root: root, paths: map[string]int{}}
	return w.all(root, "")
}

// A walker counts the ways in which schemas apply in place, by their pointers.
type walker struct {
	root  any
	paths map[string]int // finished counts; -1 while a schema is being counted
}

// all counts from a schema and from every schema inside it.
func (w *walker) all(v any, at string) error {
	if _, err := w.count(v, at); err != nil {
		return err
	}
	members, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if err := keywords[key].eachSchema(members[key], at+naming.Pointer(key), w.all); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) count(v any, at string) (int, error) {
	members, ok := v.(map[string]any)
	if !ok {
		return 1, nil
	}
	if n, seen := w.paths[at]; seen {
		if n < 0 {
			return 0, fmt.Errorf("%w: %s refers to itself without going into the value, so it has no end", ErrInvalid, place(at))
		}
		return n, nil
	}
	w.paths[at] = -1
	total := 1
	add := func(v any, at string) error {
		n, err := w.count(v, at)
		if total += n; err == nil && total > maxPaths {
			err = fmt.Errorf("%w: %s applies to one value in more than %d ways", ErrInvalid, place(at), maxPaths)
		}
		return err
	}
	if ref, ok := members["$ref"].(string); ok {
		to := strings.TrimPrefix(ref, "#")
		target, ok := find(w.root, to)
		if !ok {
			return 0, fmt.Errorf("%w: \"$ref\" in %s leads nowhere: there is no %q", ErrInvalid, place(at), ref)
		}
		if err := add(target, to); err != nil {
			return 0, err
		}
	}
	for _, key := range inPlace {
		var err error
		switch v := members[key].(type) {
		case []any:
			for i := 0; i < len(v) && err == nil; i++ {
				err = add(v[i], at+"/"+key+"/"+strconv.Itoa(i))
			}
		case map[string]any:
			if keywords[key] != schemaMap && keywords[key] != dependencyMap {
				err = add(v, at+"/"+key)
				break
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if err == nil {
					err = add(v[name], at+"/"+key+naming.Pointer(name))
				}
			}
		}
		if err != nil {
			return 0, err
		}
	}
	w.paths[at] = total
	return total, nil
}

// Target returns the schema that a "$ref" within the document names, or nil.
func Target(root any, ref string) any {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local || pointer != "" && pointer[0] != '/' {
		return nil
	}
	target, _ := find(root, pointer)
	return target
}

// find follows an RFC 6901 pointer.
func find(v any, pointer string) (any, bool) {
	if pointer == "" {
		return v, true
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		switch in := v.(type) {
		case map[string]any:
			member, ok := in[unescape(token)]
			if !ok {
				return nil, false
			}
			v = member
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

var unescapes = strings.NewReplacer("~1", "/", "~0", "~")

func unescape(token string) string { return unescapes.Replace(token) }
