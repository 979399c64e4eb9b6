package schema

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/matcher"
)

// Tolerant returns a schema of somebody else without what [Parse] refuses in it and others ignore:
// unknown keywords, values that a keyword cannot have, references to other documents and patterns
// that Go cannot read. So it allows no less. Text that is no JSON is returned as it is.
func Tolerant(raw string) string {
	v, err := jsonvalue.Parse(raw)
	if err != nil {
		return raw
	}
	source := v.Value()
	dropRefused(source, "")
	out, err := json.Marshal(source)
	if err != nil {
		return raw
	}
	return string(out)
}

// dropRefused removes the keywords of a schema and of all in it that [checkKeywords] refuses.
func dropRefused(v any, at string) {
	members, ok := v.(map[string]any)
	if !ok {
		return
	}
	for key, value := range members {
		s, known := keywords[key]
		text, _ := value.(string)
		switch {
		case !known && !strings.HasPrefix(key, "x-"), !s.allows(value),
			key == "$ref" && (text != "#" && !strings.HasPrefix(text, "#/") || strings.Contains(text, "%")),
			key == "$id" && at != "", key == "pattern" && !isPattern(text):
			delete(members, key)
			continue
		case key == "patternProperties":
			dropUnreadable(members, value.(map[string]any))
		}
		_ = s.eachSchema(value, at+"/", func(v any, at string) error {
			dropRefused(v, at)
			return nil
		})
	}
}

// dropUnreadable removes patterns that Go cannot read. The members that they match are then
// additional ones, of which nothing is known.
func dropUnreadable(schema, patterns map[string]any) {
	for pattern := range patterns {
		if !isPattern(pattern) {
			delete(patterns, pattern)
			delete(schema, "additionalProperties")
			delete(schema, "unevaluatedProperties")
		}
	}
}

// isPattern reports whether Go can read a pattern. One that is too large stays in the schema: what it is
// about cannot be checked, which is an error when a value is.
func isPattern(text string) bool {
	_, err := matcher.Size(text)
	_, isLimit := errors.AsType[*matcher.LimitError](err)
	return err == nil || isLimit
}
