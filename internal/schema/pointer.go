package schema

import (
	"strings"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
)

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
	tokens := strings.Split(pointer, "/")[1:]
	for i := range tokens {
		tokens[i] = naming.Unescape(tokens[i])
	}
	return jsonvalue.At(v, tokens)
}
