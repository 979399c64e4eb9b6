package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A definition is what a server says about one of its tools.
type definition struct {
	Name        string          `json:"name"` // the server's own
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"inputSchema"`
}

// A namedDefinition is a definition with the name of the tool.Tool.
type namedDefinition struct {
	name string
	definition
}

// definitionOf returns the definition of a tool. Definitions that say the same are equal.
func definitionOf(t *sdk.Tool) (definition, error) {
	inOrder(t.InputSchema)
	raw, err := json.Marshal(t.InputSchema)
	return definition{t.Name, t.Description, raw}, err
}

// inOrder sorts what is a set in a decoded JSON Schema: members of required and enum, and types.
// Servers that keep these in sets list them in another order each time.
func inOrder(schema any) {
	switch v := schema.(type) {
	case []any:
		for _, one := range v {
			inOrder(one)
		}
	case map[string]any:
		for keyword, value := range v {
			switch keyword {
			case "const", "default", "examples": // values, not schemas
			case "required", "enum", "type":
				sortSet(value)
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
				named, _ := value.(map[string]any)
				for _, one := range named {
					inOrder(one)
				}
			case "dependentRequired":
				named, _ := value.(map[string]any)
				for _, one := range named {
					sortSet(one)
				}
			default:
				inOrder(value)
			}
		}
	}
}

// sortSet sorts a list of values by what JSON writes for them.
func sortSet(value any) {
	list, _ := value.([]any)
	slices.SortStableFunc(list, func(a, b any) int {
		x, _ := json.Marshal(a) // it was decoded from JSON
		y, _ := json.Marshal(b)
		return strings.Compare(string(x), string(y))
	})
}

// A digest stands for a definition. The zero digest is that of none.
type digest [sha256.Size]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

func (d *definition) digest() digest {
	raw, err := json.Marshal(d)
	if err != nil {
		panic(err) // the schema was encoded before
	}
	return sha256.Sum256(raw)
}
