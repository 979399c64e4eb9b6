package envelope

import "github.com/runteam/runteam/internal/jsonvalue"

// JSON is one JSON value that [ParseJSON] read. It is immutable.
type JSON = jsonvalue.Value

// ParseJSON reads one JSON value strictly: valid UTF-8 and escapes, no duplicate
// keys, nothing after the value, at most 4 MiB long and 128 levels deep. The error
// says where the text is wrong and never quotes it.
func ParseJSON(raw string) (JSON, error) { return jsonvalue.Parse(raw) }
