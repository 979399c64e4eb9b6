package inspect

import (
	_ "embed"
	"slices"
)

//go:embed openapi.json
var description []byte

// OpenAPI returns the OpenAPI 3.1 description of the API, in JSON. A server serves
// it at /api/v1/openapi.json.
func OpenAPI() []byte { return slices.Clone(description) }
