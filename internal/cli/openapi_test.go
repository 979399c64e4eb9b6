package cli

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/runstate"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/runteam/runteam/inspect"
	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/cli/people"
	"github.com/runteam/runteam/internal/cli/plan"
	"github.com/runteam/runteam/internal/cli/replay"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/rungraph"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
)

// describedTypes are the types of documents whose schemas in the description of the API are made from
// them. The other schemas are written by hand.
var describedTypes = map[string]reflect.Type{
	"Run": reflect.TypeFor[view.Run](), "Task": reflect.TypeFor[view.Task](), "Usage": reflect.TypeFor[view.Usage](),
	"TaskError": reflect.TypeFor[view.Error](), "ConversationHolder": reflect.TypeFor[view.Holder](), "AwaitedReply": reflect.TypeFor[runstate.Reply](),
	"Artifact": reflect.TypeFor[history.ArtifactDocument](), "Explain": reflect.TypeFor[explain.Document](), "Question": reflect.TypeFor[people.QuestionDocument](),
	"Graph": reflect.TypeFor[rungraph.Document](), "Flow": reflect.TypeFor[plan.RunFlow](), "Handoffs": reflect.TypeFor[explain.HandoffsDocument](), "Comparison": reflect.TypeFor[replay.ComparedRuns](),
	"Pair": reflect.TypeFor[gate.PairTerms](), "PolicyDocument": reflect.TypeFor[history.PolicyDocument](),
	"Estimate": reflect.TypeFor[run.Estimate](),
	"Event":    reflect.TypeFor[event.Event](), "Viewer": reflect.TypeFor[inspector.Viewer](), "Error": reflect.TypeFor[inspector.Error](),
}

// TestDescriptionHasTheTypes holds the schemas of the description to the types of the documents. With
// -update it writes them.
func TestDescriptionHasTheTypes(t *testing.T) {
	t.Parallel()
	d := &describer{t: t, names: map[reflect.Type]string{}, schemas: map[string]*jsonschema.Schema{}}
	for name, of := range describedTypes {
		d.names[of] = name
	}
	for _, name := range slices.Sorted(maps.Keys(describedTypes)) {
		d.describe(describedTypes[name])
	}
	var doc struct {
		OpenAPI    json.RawMessage `json:"openapi"`
		Info       json.RawMessage `json:"info"`
		Servers    json.RawMessage `json:"servers"`
		Security   json.RawMessage `json:"security"`
		Tags       json.RawMessage `json:"tags"`
		Paths      json.RawMessage `json:"paths"`
		Components struct {
			SecuritySchemes json.RawMessage            `json:"securitySchemes"`
			Parameters      json.RawMessage            `json:"parameters"`
			Responses       json.RawMessage            `json:"responses"`
			Schemas         map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(inspect.OpenAPI(), &doc))
	for name, s := range d.schemas {
		text, err := json.Marshal(s)
		require.NoError(t, err)
		doc.Components.Schemas[name] = text
	}
	var flat, want bytes.Buffer
	e := json.NewEncoder(&flat)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(doc))
	require.NoError(t, json.Indent(&want, flat.Bytes(), "", "\t"))
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile("../../inspect/openapi.json", want.Bytes(), 0o644))
		return
	}
	require.True(t, want.String() == string(inspect.OpenAPI()), "inspect/openapi.json does not have the types: run this test with -update")
}

// A describer makes the schemas of types, one for each named struct.
type describer struct {
	t       *testing.T
	names   map[reflect.Type]string
	schemas map[string]*jsonschema.Schema
}

// values are the types that are written as something else than what they are made of.
var values = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[label.Classification](): {Type: "string", Enum: []any{"public", "internal", "confidential", "secret"}},
	reflect.TypeFor[time.Time]():            {Type: "string", Format: "date-time"},
	reflect.TypeFor[json.RawMessage]():      {},
	reflect.TypeFor[inspector.Code]():       {Ref: "#/components/schemas/Code"},
}

// describe makes the schema of a struct, and of all structs in it.
func (d *describer) describe(of reflect.Type) {
	name := d.names[of]
	if d.schemas[name] != nil {
		return
	}
	d.schemas[name] = &jsonschema.Schema{}
	others := maps.Clone(values)
	d.visit(of, others)
	delete(others, of)
	s, err := jsonschema.ForType(of, &jsonschema.ForOptions{TypeSchemas: others})
	require.NoError(d.t, err, "%v", of)
	if of == reflect.TypeFor[event.Event]() { // it writes its times in milliseconds
		for _, added := range []string{"waitMs", "durationMs"} {
			s.Properties[added] = &jsonschema.Schema{Type: "integer"}
		}
	}
	s.AdditionalProperties, s.PropertyOrder = nil, nil
	for name, p := range s.Properties {
		withoutNull(p, slices.Contains(s.Required, name))
	}
	*d.schemas[name] = *s
}

// withoutNull removes null from a schema of a member that is left out if it is empty, and says of another
// that it is null or what the schema refers to: beside a reference, the type would be required too.
func withoutNull(s *jsonschema.Schema, required bool) {
	isNull := slices.Contains(s.Types, "null")
	switch {
	case s.Ref != "" && isNull && required:
		*s = jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "null"}, {Ref: s.Ref}}}
	case s.Ref != "":
		s.Types = nil
	case isNull && !required && len(s.Types) == 2:
		s.Type, s.Types = s.Types[1], nil
	}
	for _, in := range []*jsonschema.Schema{s.Items, s.AdditionalProperties} {
		if in != nil {
			withoutNull(in, slices.Contains(in.Types, "array")) // a list in a list may be null
		}
	}
}

// visit describes the structs that are in a type, and says how they are referred to.
func (d *describer) visit(of reflect.Type, others map[reflect.Type]*jsonschema.Schema) {
	for f := range of.Fields() {
		if tag := f.Tag.Get("json"); tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		in := f.Type
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array}, in.Kind()) && values[in] == nil {
			in = in.Elem()
		}
		switch {
		case values[in] == nil && in.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
			others[in] = &jsonschema.Schema{Type: "string"}
		case values[in] != nil || in.Kind() != reflect.Struct:
		case f.Anonymous && f.Tag.Get("json") == "":
			d.visit(in, others)
		default:
			if d.names[in] == "" {
				d.names[in] = d.nameOf(in)
			}
			d.describe(in)
			others[in] = &jsonschema.Schema{Ref: "#/components/schemas/" + d.names[in]}
		}
	}
}

// nameOf returns a name for a type that no other has.
func (d *describer) nameOf(of reflect.Type) string {
	name := strings.TrimSuffix(of.Name(), "Document")
	name = strings.ToUpper(name[:1]) + name[1:]
	for _, other := range d.names {
		if other == name {
			pkg := of.PkgPath()[strings.LastIndex(of.PkgPath(), "/")+1:]
			return strings.ToUpper(pkg[:1]) + pkg[1:] + name
		}
	}
	return name
}
