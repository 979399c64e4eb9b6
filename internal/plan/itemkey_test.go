package plan_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

func TestBadKeysOfItems(t *testing.T) {
	t.Parallel()
	folder, err := team.ReadFolder(fstest.MapFS{"a.md": {Data: []byte("x")}})
	require.NoError(t, err)
	in := func(text, format string) plan.Input { return plan.Input{Name: "in", Text: text, ListFormat: format} }
	items := func(item string) string {
		return `{"type": "object", "required": ["all"], "properties": {"all": {"type": "array", "items": ` + item + `}}}`
	}
	for name, tt := range map[string]struct {
		key    task.Path
		input  plan.Input
		schema string
		want   string
	}{
		"no slash":         {key: "id", input: in("id\n1\n", "csv"), want: `key "id" does not begin with a slash: write a path in an item`},
		"several values":   {key: "/*/id", input: in("id\n1\n", "csv"), want: `"/*/id" may be several values`},
		"no such column":   {key: "/emial", input: in("id,email\n1,2\n", "csv"), want: `input "in" has no column /emial: did you mean "/email"? the columns are email, id`},
		"no header":        {key: "/email", input: in("1,a@b.org\n2,b@b.org\n", "csv"), want: `input "in" has no column /email: the columns by line 1 are 1, a@b.org; if that is no header, add one`},
		"another member":   {key: "/name", schema: items(`{"type": "object", "required": ["nmae"], "properties": {"nmae": {"type": "string"}}, "additionalProperties": false}`), want: `/all/*/name is no member of the items by the outputSchema: did you mean "/nmae"?`},
		"not in each line": {key: "/id", input: in("{\"id\": 1}\n\n{\"no\": 2}\n", "ndjson"), want: `input "in": line 3 has no text and no number at /id`},
		"not in each item": {key: "/id", input: in(`[{"id": 1}, {"id": {"a": 1}}]`, ""), want: `input "in": item 2 has no text and no number at /id: write the path of a member that each item has`},
		"items are texts":  {key: "/id", input: in(`["a"]`, ""), want: `input "in": item 1 has no text and no number at /id`},
		"a folder":         {key: "/name", input: plan.Input{Name: "in", Folder: folder}, want: `input "in" is a folder, whose files have no key: remove key`},
		"no such member":   {key: "/id", schema: items(`{"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": false}`), want: `/all/*/id is no member of the items`},
		"not required":     {key: "/id", schema: items(`{"type": "object", "properties": {"id": {"type": "string"}}}`), want: `/all/*/id is not required by the outputSchema`},
		"any value":        {key: "/id", schema: items(`{"type": "object", "required": ["id"], "properties": {"id": {}}}`), want: `/all/*/id is not only a text or a number`},
		"perhaps null":     {key: "/id", schema: items(`{"type": "object", "required": ["id"], "properties": {"id": {"type": ["string", "null"]}}}`), want: `/all/*/id is not only a text or a number`},
		"perhaps a list":   {key: "/id", schema: items(`{"type": "object", "required": ["id"], "properties": {"id": {"type": ["string", "array"]}}}`), want: `/all/*/id is not only a text or a number`},
		"good texts":       {key: "/id", schema: items(`{"type": "object", "required": ["id"], "properties": {"id": {"enum": ["a", 1]}}}`)},
		"good numbers":     {key: "/a/id", schema: items(`{"type": "object", "required": ["a"], "properties": {"a": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := task.ForEach{Input: "in", Key: tt.key, MaxItems: 3}
			o := &plan.Options{Inputs: []plan.Input{tt.input}}
			var specs []task.Spec
			if tt.schema != "" {
				list.Input, list.Task, list.Path, o.Inputs = "", "Plan", "/all", nil
				specs = []task.Spec{{Title: "Plan", Description: "d", Assignee: "a", OutputSchema: []byte(tt.schema)}}
			}
			specs = append(specs, task.Spec{Title: "Mail", Description: "d", Assignee: "a", ForEach: &list})
			_, err := newTeam(t, cleared("a", label.Secret)).plan(specs, o)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			var problems task.Problems
			require.ErrorAs(t, err, &problems)
			require.Len(t, problems, 1)
			require.Equal(t, fmt.Sprintf("/tasks/%d/forEach/key", len(specs)-1), problems[0].Pointer)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// The flow table says that the caller sees keys, also those of inputs, which it does not otherwise.
func TestKeysAreInTheFlowTable(t *testing.T) {
	t.Parallel()
	for key, broken := range map[task.Path]bool{"/id": true, "": false} {
		specs := []task.Spec{{Title: "Mail", Description: "d", Assignee: "a", ForEach: &task.ForEach{Input: "people", Key: key, MaxItems: 3}}}
		p, err := newTeam(t, cleared("a", label.Secret)).plan(specs, &plan.Options{
			Inputs: []plan.Input{{Name: "people", Text: "id,mail\n1,2\n", ListFormat: "csv"}}, Assert: asserting(t, "input people never reaches user"),
		})
		require.NoError(t, err)
		require.Equal(t, broken, p.Broken().Err() != nil, "%v", p.Broken())
	}
}
