package inspect_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/inspect"
	"github.com/runteam/runteam/internal/inspector"
)

// A description is what the tests read of the OpenAPI description.
type description struct {
	OpenAPI    string
	Security   []map[string][]string
	Tags       []struct{ Name string }
	Paths      map[string]map[string]operation
	Components struct {
		SecuritySchemes       map[string]any
		Parameters, Responses map[string]json.RawMessage
		Schemas               map[string]json.RawMessage
	}
}

type operation struct {
	OperationID string
	Tags        []string
	Summary     string
	Parameters  []struct {
		Ref string `json:"$ref"`
	}
	RequestBody *struct{ Content map[string]any }
	Responses   map[string]json.RawMessage
}

func described(t *testing.T) (d description) {
	t.Helper()
	require.NoError(t, json.Unmarshal(inspect.OpenAPI(), &d))
	return d
}

// TestEveryRouteIsDescribed and no other.
func TestEveryRouteIsDescribed(t *testing.T) {
	t.Parallel()
	d := described(t)
	var routes, paths []string
	for _, r := range inspector.Routes() {
		routes = append(routes, r.Method+" "+r.Path)
	}
	ids := map[string]bool{}
	var tags []string
	for _, tag := range d.Tags {
		tags = append(tags, tag.Name)
	}
	for path, operations := range d.Paths {
		for method, o := range operations {
			at := strings.ToUpper(method) + " " + path
			paths = append(paths, at)
			require.NotEmpty(t, o.Summary, at)
			require.False(t, ids[o.OperationID], "%s: a second %s", at, o.OperationID)
			ids[o.OperationID] = true
			for _, tag := range o.Tags {
				require.Contains(t, tags, tag, at)
			}
			for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
				require.True(t, slices.ContainsFunc(o.Parameters, func(p struct {
					Ref string `json:"$ref"`
				}) bool {
					return p.Ref == "#/components/parameters/"+name[1]
				}), "%s: {%s} is not described", at, name[1])
			}
			require.Equal(t, method != "get", o.RequestBody != nil, at)
			for _, status := range []string{"401", "403", "503"} {
				require.Contains(t, o.Responses, status, at)
			}
		}
	}
	require.ElementsMatch(t, routes, paths)
}

// TestEachErrorHasAStatus: the codes of errors are those of the schema, and each status of an error is
// described.
func TestEachErrorHasAStatus(t *testing.T) {
	t.Parallel()
	d := described(t)
	statuses := map[int]bool{}
	for _, code := range []inspector.Code{
		inspector.BadRequest, inspector.Unauthorized, inspector.Forbidden, inspector.NotFound, inspector.Conflict, inspector.Widening, inspector.Stale,
		inspector.TooLarge, inspector.Invalid, inspector.Precondition, inspector.TooMany, inspector.Unavailable,
	} {
		statuses[(&inspector.Error{Code: code}).Status()] = true
		require.Contains(t, string(d.Components.Schemas["Code"]), `"`+string(code)+`"`)
	}
	used := map[string]bool{}
	for _, operations := range d.Paths {
		for _, o := range operations {
			for status := range o.Responses {
				used[status] = true
			}
		}
	}
	for status := range statuses {
		require.True(t, used[http.StatusText(status)] || used[statusText(status)], "no operation has status %d", status)
	}
	require.Len(t, d.Components.Responses, len(statuses))
}

func statusText(status int) string {
	text, _ := json.Marshal(status)
	return string(text)
}

// TestReferencesLead to what is described, and everything that is described is used.
func TestReferencesLead(t *testing.T) {
	t.Parallel()
	d := described(t)
	used := map[string]bool{}
	for _, ref := range regexp.MustCompile(`"\$ref":\s*"#/components/(\w+)/(\w+)"`).FindAllStringSubmatch(string(inspect.OpenAPI()), -1) {
		used[ref[1]+"/"+ref[2]] = true
	}
	var known []string
	for kind, names := range map[string][]string{
		"schemas": slices.Collect(maps.Keys(d.Components.Schemas)), "responses": slices.Collect(maps.Keys(d.Components.Responses)),
		"parameters": slices.Collect(maps.Keys(d.Components.Parameters)),
	} {
		for _, name := range names {
			known = append(known, kind+"/"+name)
		}
	}
	require.ElementsMatch(t, known, slices.Collect(maps.Keys(used)))
	for _, one := range d.Security {
		for name := range one {
			require.Contains(t, d.Components.SecuritySchemes, name)
		}
	}
}

func TestSchemasAreSchemas(t *testing.T) {
	t.Parallel()
	d := described(t)
	require.Equal(t, "3.1.0", d.OpenAPI)
	for name, raw := range d.Components.Schemas {
		var s jsonschema.Schema
		require.NoError(t, json.Unmarshal(raw, &s), name)
	}
}
