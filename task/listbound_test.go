package task_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/task"
)

// A list without MaxItems has as many instances as the schema of its producer allows.
func TestTheSchemaBoundsAList(t *testing.T) {
	t.Parallel()
	const list = `{"type":"array","items":{"type":"string"},"maxItems":%d}`
	two, three := fmt.Sprintf(list, 2), fmt.Sprintf(list, 3)
	for _, tt := range []struct {
		name, schema string
		path         task.Path
		own          int
		want         int // zero for an error
	}{
		{"a member", `{"properties":{"to":` + two + `}}`, "/to", 0, 2},
		{"deeper", `{"properties":{"a":{"properties":{"b/c":` + three + `}}}}`, "/a/b~1c", 0, 3},
		{"in an item", `{"properties":{"a":{"items":{"properties":{"to":` + two + `}}}}}`, "/a/0/to", 0, 2},
		{"a reference", `{"$defs":{"l":` + two + `},"properties":{"to":{"$ref":"#/$defs/l"}}}`, "/to", 0, 2},
		{"the lowest of several", `{"properties":{"to":{"allOf":[` + three + `,` + two + `]}}}`, "/to", 0, 2},
		{"its own", `{"properties":{"to":` + three + `}}`, "/to", 1, 1},
		{"no bound", `{"properties":{"to":{"type":"array"}}}`, "/to", 0, 0},
		{"another list", `{"properties":{"to":{"type":"array"},"cc":` + two + `}}`, "/to", 0, 0},
		{"a reference to itself", `{"$ref":"#"}`, "/to", 0, 0},
		{"a reference to nothing", `{"properties":{"to":{"$ref":"#/$defs/l"}}}`, "/to", 0, 0},
		{"a reference elsewhere", `{"properties":{"to":{"$ref":"other.json"}}}`, "/to", 0, 0},
		{"no schema", ``, "/to", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plan := task.Spec{Title: "Plan", Key: "p", Description: "d", OutputSchema: []byte(tt.schema)}
			send := task.Spec{Title: "Send", Description: "d", ForEach: &task.ForEach{Task: "p", Path: tt.path, MaxItems: tt.own}}
			report := task.Spec{Title: "Report", Description: "d", DependsOn: []task.Ref{{Each: "Send"}}}
			specs := []task.Spec{report, plan, send}
			all, _, err := task.Unroll(specs)
			if tt.want == 0 {
				require.ErrorContains(t, err, `neither maxItems nor the outputSchema of "p" says how many items there may be`)
				return
			}
			require.NoError(t, err)
			require.Len(t, all, 2+tt.want)
			require.Len(t, all[0].DependsOn, tt.want)
			require.Equal(t, tt.own, specs[2].ForEach.MaxItems, "the caller's spec stays as it is")
		})
	}
}

// The producer can be a loop, or a task around the list.
func TestTheSchemaOfALoopBoundsAList(t *testing.T) {
	t.Parallel()
	schema := []byte(`{"properties":{"ok":{"type":"boolean"},"to":{"type":"array","maxItems":2}}}`)
	loop := task.Spec{Title: "Loop", Repeat: &task.Repeat{MaxRounds: 2, Until: task.Equals("Write", "/ok", true), Output: "Write", Tasks: []task.Spec{
		{Title: "Write", Description: "d", OutputSchema: schema},
		{Title: "Inner", Description: "d", ForEach: &task.ForEach{Task: "Write", Path: "/to"}},
	}}}
	all, _, err := task.Unroll([]task.Spec{loop, {Title: "Send", Description: "d", ForEach: &task.ForEach{Task: "Loop", Path: "/to"}}})
	require.NoError(t, err)
	require.Len(t, all, 2*(1+2)+1+2)
}
