package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// requireSaid checks that a plan is refused with a problem, or has one warning; nothing if both are empty. It reports whether
// there is one of both.
func requireSaid(t *testing.T, p *plan.Plan, err error, problem, warning string) bool {
	t.Helper()
	if problem != "" {
		require.ErrorContains(t, err, problem)
		return true
	}
	require.NoError(t, err)
	if warning == "" {
		require.Empty(t, p.Warnings)
		return false
	}
	require.Len(t, p.Warnings, 1)
	require.Contains(t, p.Warnings[0].Error(), warning)
	return true
}

// TestEdgesRaiseLabels checks that labels over edges are a fixed point: c gets from b what b gets from a.
func TestEdgesRaiseLabels(t *testing.T) {
	t.Parallel()
	work := newTool(t, "work", tool.Options{Effect: tool.None, Accepts: label.Confidential, Produces: new(label.Public)})
	high := func(name string) plan.Member {
		m := clerk(name, work)
		m.Accepts = label.Confidential
		return m
	}
	secretive := spec("a")
	secretive.Classification = label.Confidential
	members := func() []plan.Member {
		return []plan.Member{high("a"), high("b"), high("c")}
	}
	cycle := []handoff.Edge{{From: "a", To: "b", Bidirectional: true}, {From: "b", To: "c", Bidirectional: true}}
	p, err := newTeamWith(t, cycle, members()...).plan([]task.Spec{secretive, spec("b"), spec("c")}, nil)
	require.NoError(t, err)
	for i := range p.Labels {
		require.Equal(t, label.Confidential, p.Labels[i], p.Graph.Task(i).Title)
	}
	low := handoff.Edge{From: "b", To: "c", Bidirectional: true, MaxClassification: new(label.Internal)}
	p, err = newTeamWith(t, []handoff.Edge{{From: "a", To: "b"}, low}, members()...).plan([]task.Spec{secretive, spec("b"), spec("c")}, nil)
	require.NoError(t, err)
	require.Equal(t, []label.Classification{label.Confidential, label.Confidential, label.Internal}, p.Labels)

	for _, tt := range []struct {
		assert string
		holds  bool
	}{{"task a never derives into c", false}, {"task c never derives into a", false}} {
		p, err := newTeamWith(t, cycle, members()...).plan([]task.Spec{secretive, spec("b"), spec("c")}, &plan.Options{Assert: asserting(t, tt.assert)})
		require.NoError(t, err)
		require.Equal(t, tt.holds, p.Findings[0].Holds, tt.assert)
	}
	p, err = newTeamWith(t, cycle[:1], members()...).plan([]task.Spec{secretive, spec("b"), spec("c")}, &plan.Options{Assert: asserting(t, "task a never derives into c")})
	require.NoError(t, err)
	require.True(t, p.Findings[0].Holds)
}

func TestEdgesThatNobodyCanUse(t *testing.T) {
	t.Parallel()
	work := newTool(t, "work", tool.Options{Effect: tool.None})
	confidential := spec("a")
	confidential.Classification = label.Confidential
	for name, tt := range map[string]struct {
		edge  handoff.Edge
		specs []task.Spec
		want  string
	}{
		"order":     {handoff.Edge{From: "b", To: "a"}, []task.Spec{spec("a"), spec("b", "a")}, `edge 1: nothing that "b" sends can be read: every task of "a" has ended before`},
		"one way":   {handoff.Edge{From: "a", To: "b", Bidirectional: true}, []task.Spec{spec("a"), spec("b", "a")}, `remove bidirectional, so that the edge leads from "a" to "b" only`},
		"clearance": {handoff.Edge{From: "a", To: "b"}, []task.Spec{confidential, spec("b")}, `edge 1: nothing that "a" sends can be read by "b"`},
		"ceiling":   {handoff.Edge{From: "a", To: "b", MaxClassification: new(label.Internal)}, []task.Spec{confidential, spec("b")}, `edge 1: "a" cannot send anything to "b": its context is at least confidential, and the edge carries at most internal`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := cleared("a", label.Confidential), clerk("b", work)
			_, err := newTeamWith(t, []handoff.Edge{tt.edge}, a, b).plan(tt.specs, nil)
			require.ErrorContains(t, err, tt.want)
		})
	}
	p, err := newTeamWith(t, []handoff.Edge{{From: "a", To: "b"}}, clerk("a", work), clerk("b", work)).plan([]task.Spec{spec("a")}, nil)
	require.NoError(t, err)
	require.Len(t, p.Warnings, 1)
	require.Contains(t, p.Warnings[0].Error(), `"b" has no task, so nobody reads what "a" sends to it`)
}

// TestEdgesToDelegates checks edges to agents without a task, along which goals are delegated.
func TestEdgesToDelegates(t *testing.T) {
	t.Parallel()
	confidential, only := spec("a"), spec("a")
	confidential.Classification, only.Tools = label.Confidential, []string{}
	lower := &handoff.Policy{Declassify: []handoff.Declassifier{lowering("a", "b", label.Internal)}}
	lower.Declassify[0].UnsafeText, lower.Declassify[0].Paths = true, []task.Path{task.Whole}
	for name, tt := range map[string]struct {
		most          *label.Classification
		transfer      bool
		policy        *handoff.Policy
		specs         []task.Spec
		want, warning string
	}{
		"works":          {specs: []task.Spec{spec("a")}},
		"clearance":      {specs: []task.Spec{confidential}, want: `edge 1: "a" cannot delegate anything to "b": its context is at least confidential, and "b" may see internal: raise accepts of the reader`},
		"ceiling":        {most: new(label.Internal), specs: []task.Spec{confidential}, want: `edge 1: "a" cannot delegate anything to "b": its context is at least confidential, and the edge carries at most internal: raise maxClassification to confidential`},
		"transfers too":  {transfer: true, specs: []task.Spec{spec("a")}},
		"lowered":        {policy: lower, specs: []task.Spec{confidential}},
		"without a tool": {specs: []task.Spec{only}, warning: `"b" has no task, and no task of "a" has the tool delegate_to_agent, so the edge is not used`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := newTool(t, "work", tool.Options{Effect: tool.None})
			a, b := cleared("a", label.Confidential), clerk("b", work)
			r, err := newRoster(plan.Config{Agents: []plan.Member{a, b}, Edges: []handoff.Edge{{From: "a", To: "b", Delegate: true, Transfer: tt.transfer, MaxClassification: tt.most}}, Policy: tt.policy})
			require.NoError(t, err)
			p, err := r.plan(tt.specs, nil)
			if requireSaid(t, p, err, tt.want, tt.warning) {
				return
			}
			if !tt.transfer {
				require.Equal(t, []string{"delegate_to_agent"}, p.Tasks[0].Tools, "nobody would read a handoff")
			}
		})
	}
}

// TestEdgesToEarlierAgents checks edges to agents whose tasks have ended when the sender works. They can read no
// handoff, and need no task for a goal or a conversation.
func TestEdgesToEarlierAgents(t *testing.T) {
	t.Parallel()
	confidential, only := spec("b", "a"), spec("b", "a")
	confidential.Classification, only.Tools = label.Confidential, []string{}
	for name, tt := range map[string]struct {
		edge          handoff.Edge
		last          task.Spec
		want, warning string
		tools         []string
	}{
		"delegates":      {edge: handoff.Edge{Delegate: true}, last: spec("b", "a"), tools: []string{"delegate_to_agent"}},
		"nothing":        {last: spec("b", "a"), want: `edge 1: nothing that "b" sends can be read: every task of "a" has ended before`},
		"above delegate": {edge: handoff.Edge{Delegate: true}, last: confidential, want: `edge 1: "b" cannot delegate anything to "a": its context is at least confidential, and "a" may see internal`},
		"both":           {edge: handoff.Edge{Transfer: true, Delegate: true}, last: spec("b", "a"), tools: []string{"send_handoff", "delegate_to_agent", "transfer_to_a"}},
		"transfers":      {edge: handoff.Edge{Transfer: true}, last: spec("b", "a"), tools: []string{"send_handoff", "transfer_to_a"}},
		"above transfer": {edge: handoff.Edge{Transfer: true}, last: confidential, want: `every task of "a" has ended before; and no conversation can be transferred to it: the task is at least confidential, and "a" may see internal`},
		"not granted":    {edge: handoff.Edge{Transfer: true}, last: only, want: `every task of "a" has ended before; and no conversation can be transferred to it: no task of "b" has the tool transfer_to_a`},
		"without a tool": {edge: handoff.Edge{Delegate: true}, last: only, warning: `every task of "a" has ended before, and no task of "b" has the tool delegate_to_agent, so the edge is not used`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := newTool(t, "work", tool.Options{Effect: tool.None})
			b := clerk("b", work)
			b.Accepts = label.Confidential
			tt.edge.From, tt.edge.To = "b", "a"
			p, err := newTeamWith(t, []handoff.Edge{tt.edge}, clerk("a", work), b).plan([]task.Spec{spec("a"), tt.last}, nil)
			if requireSaid(t, p, err, tt.want, tt.warning) {
				return
			}
			require.Equal(t, append([]string{"work"}, tt.tools...), p.Tasks[1].Tools)
		})
	}
}

// TestUnusedEdges checks the warnings about edges that no task can use, whatever its context is.
func TestUnusedEdges(t *testing.T) {
	t.Parallel()
	quiet := spec("a")
	quiet.Tools = []string{}
	sending := spec("a")
	sending.Tools = []string{"send_handoff"}
	goes := clerk("a")
	goes.Agent = unused // it may send without a tool
	for name, tt := range map[string]struct {
		edge  handoff.Edge
		a     plan.Member
		specs []task.Spec
		want  string
	}{
		"sender without a task": {handoff.Edge{From: "c", To: "a"}, clerk("a"), []task.Spec{spec("a"), spec("b")}, `edge 1: "c" has no task, so it sends nothing along the edge: give it a task, or remove the edge`},
		"delegate that sends":   {handoff.Edge{From: "c", To: "a", Delegate: true}, clerk("a"), []task.Spec{spec("a"), spec("b")}, `edge 1: "c" has no task, so it sends nothing along the edge`},
		"no tool":               {handoff.Edge{From: "a", To: "b"}, clerk("a"), []task.Spec{quiet, spec("b")}, `edge 1: no task of "a" has a tool that uses the edge: add send_handoff to tools of a task, or remove the edge`},
		"no tool of either":     {handoff.Edge{From: "a", To: "b", Bidirectional: true}, clerk("a"), []task.Spec{quiet, by("b", quiet)}, `edge 1: no task of "a" or "b" has a tool that uses the edge`},
		"tool of one":           {handoff.Edge{From: "a", To: "b", Bidirectional: true}, clerk("a"), []task.Spec{quiet, spec("b")}, ""},
		"written in Go":         {handoff.Edge{From: "a", To: "b"}, goes, []task.Spec{quiet, spec("b")}, ""},
		"no delegating task":    {handoff.Edge{From: "a", To: "b", Delegate: true}, clerk("a"), []task.Spec{sending, spec("b")}, `edge 1: no task of "a" has the tool delegate_to_agent: add it to tools of a task, or remove delegate`},
		"no transferring task":  {handoff.Edge{From: "a", To: "b", Transfer: true}, clerk("a"), []task.Spec{sending, spec("b")}, `edge 1: no task of "a" has the tool transfer_to_b: add it to tools of a task, or remove transfer`},
		"no task to transfer":   {handoff.Edge{From: "a", To: "c", Transfer: true}, clerk("a"), []task.Spec{quiet, spec("b")}, `edge 1: no task of "a" has a tool that uses the edge: add transfer_to_c to tools`},
		"used":                  {handoff.Edge{From: "a", To: "b", Transfer: true, Delegate: true}, clerk("a"), []task.Spec{spec("a"), spec("b")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range tt.specs { // copies have titles of their own
				tt.specs[i].Title = tt.specs[i].Assignee
			}
			p, err := newTeamWith(t, []handoff.Edge{tt.edge}, tt.a, clerk("b"), clerk("c")).plan(tt.specs, nil)
			require.NoError(t, err)
			if tt.want == "" {
				require.Empty(t, p.Warnings)
				return
			}
			require.Len(t, p.Warnings, 1)
			require.Contains(t, p.Warnings[0].Error(), tt.want)
		})
	}
}

// TestRepliesRaiseLabels checks that the label of a reply is part of the label of each task that may wait for one.
func TestRepliesRaiseLabels(t *testing.T) {
	t.Parallel()
	high := func(name string) plan.Member { return cleared(name, label.Confidential) }
	secretive := spec("b")
	secretive.Classification = label.Confidential
	third := handoff.Edge{From: "a", To: "c", MaxClassification: new(label.Internal)}
	specs := []task.Spec{spec("a"), secretive, spec("c")}
	_, err := newTeamWith(t, append(edges("a<>b"), third), high("a"), high("b"), high("c")).plan(specs, nil)
	require.ErrorContains(t, err, `edge 2: "a" cannot send anything to "c": its context is at least confidential, and the edge carries at most internal`)

	p, err := newTeamWith(t, append(edges("b>a"), third), high("a"), high("b"), high("c")).plan(specs, nil)
	require.NoError(t, err, "a cannot ask b, so what b sends is optional")
	require.Equal(t, label.Confidential, p.Labels[0])

	quiet := spec("a")
	quiet.Tools = []string{}
	_, err = newTeamWith(t, edges("a<>b"), high("a"), high("b"), high("c")).plan([]task.Spec{quiet, secretive}, nil)
	require.NoError(t, err)
}
