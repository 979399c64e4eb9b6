package toolschema

import (
	"strings"
	"unicode/utf8"
)

// Limits of what descriptions say, in bytes.
const (
	maxSchemaNote  = 32 << 10 // of a whole schema
	maxNote        = 4 << 10  // of what is left out at the top
	maxKeywordNote = 300      // of one keyword that is left out
)

// clipped returns at most n bytes of a text.
func clipped(raw []byte, n int) string {
	if len(raw) <= n {
		return string(raw)
	}
	for n > 0 && !utf8.RuneStart(raw[n]) {
		n--
	}
	return string(raw[:n]) + " … (the rest is left out)"
}

// A remark is what the description of a schema says about keywords that are left out.
type remark struct{ parts []string }

// add adds a keyword, unless its value is long.
func (r *remark) add(keyword string, v any) {
	if raw := appendValue(nil, v); len(raw) <= maxKeywordNote {
		r.parts = append(r.parts, keyword+": "+string(raw))
	}
}

// on adds the remark to the description of a schema.
func (r *remark) on(o *object) {
	if len(r.parts) == 0 {
		return
	}
	said := "(" + strings.Join(r.parts, "; ") + ")"
	if described, ok := textOf(o.get("description")); ok && described != "" {
		said = described + " " + said
	}
	o.set("description", text(said))
}
