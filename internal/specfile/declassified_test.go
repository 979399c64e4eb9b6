package specfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
)

// TestUnboundedPathsAreReportedOnce checks that paths of a declassifier of which
// the same is to be said share a problem, and that it names the schema.
func TestUnboundedPathsAreReportedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const text = `agents: [{name: a, accepts: confidential}, {name: i, accepts: confidential, outputSchema: {file: s.json}}, {name: b}]
schemas:
  free: {type: object, properties: {x: {type: string}, y: {type: number}, z: {type: number}}}
tasks:
  - {title: A, assignee: a, description: d, classification: confidential}
  - {title: S, assignee: a, description: d, classification: confidential, outputSchema: free}
  - {title: I, assignee: i, description: d, classification: confidential}
  - {title: B, assignee: b, description: d, dependsOn: [A, S, I]}
  - {title: C, assignee: b, description: d, dependsOn: [I]}
policy:
  declassify:
    - {name: d, from: a, to: b, paths: [/x, /y, /z], lowerTo: internal, reason: r%s}
    - {name: e, from: i, to: b, paths: [/x, /z], lowerTo: internal, reason: r}
`
	write(t, dir, "team.yaml", fmt.Sprintf(text, ""), "unsafe.yaml", fmt.Sprintf(text, ", unsafeText: true"),
		"s.json", `{"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}, "z": {"type": "string"}}}`)
	const hint = "bound it in the outputSchema%s, or set unsafeText: true if it may carry whatever its producer has read"
	const loose = `allows any text there: write "enum", or "pattern" such as "^[A-Z]{2}-[0-9]{1,6}$"`
	_, err := check(specfile.Options{Path: dir})
	bad, ok := errors.AsType[*specfile.Error](err)
	require.True(t, ok, "%v", err)
	got := make([]string, len(bad.Problems))
	for i, p := range bad.Problems {
		got[i] = strings.ReplaceAll(fmt.Sprintf("%d:%d: %s; %s", p.Line, p.Column, p.Message, p.Hint), dir+"/", "")
	}
	require.Equal(t, []string{
		`12:40: "d": the result of "A": /x, /y and /z are not bounded: there is no schema; write one in outputSchema; ` + fmt.Sprintf(hint, ""),
		`12:41: "d": the result of "S": /x is not bounded: /properties/x ` + loose + "; " + fmt.Sprintf(hint, " (team.yaml:3)"),
		`13:45: "e": the result of "I": /z is not bounded: /properties/z ` + loose + "; " + fmt.Sprintf(hint, " (s.json:1)"),
	}, got)

	f, err := specfile.Load(specfile.Options{Path: dir + "/unsafe.yaml"})
	require.NoError(t, err)
	built, err := f.Build(idle)
	require.NoError(t, err)
	f.Tasks[3].DependsOn = f.Tasks[3].DependsOn[:2] // without what e does not allow
	f.Tasks = f.Tasks[:4]
	plan, err := built.Plan(f.Tasks, &f.Run)
	require.NoError(t, err)
	require.Len(t, plan.Warnings, 5, "one for each path, and that e does nothing")
	warned, ok := errors.AsType[*specfile.Error](f.Locate(task.Problems(plan.Warnings)))
	require.True(t, ok)
	require.Len(t, warned.Problems, 3, "one for each result, and that")
}
