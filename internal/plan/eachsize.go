package plan

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/bytesize"
)

// briefResult is the size of a result, in bytes, that leaves little to cut.
const briefResult = 1 << 10

// adviseEach warns of a task that reads the results for all items of a list, and whose prompt has
// no room for them: they would be cut to a few words each.
func (c *sizeCheck) adviseEach(i int) {
	t := c.plan.Graph.Task(i)
	most := brief.Limit(c.team.MemberLimits(int(c.plan.Members[i])).MaxPromptBytes)
	for j := 0; j < len(t.DependsOn); {
		d, n := &t.DependsOn[j], 1
		for ; d.Each != "" && j+n < len(t.DependsOn) && t.DependsOn[j+n].Each == d.Each; n++ {
		}
		at, items := j, n
		if j += n; d.Each == "" {
			continue
		}
		up := c.plan.Graph.Task(int(c.plan.Graph.Upstream(i)[at]))
		if terms := c.team.Terms(up.Assignee, t.Assignee); terms.Mode() == handoff.Minimal || isRead(t, at) {
			continue
		}
		if in := up.Instance; len(in.Lists) == 1 && in.Lists[0].Input != "" && !c.hides(in.Lists[0].Input) {
			items = min(items, ListOf(c.plan, in.Lists[0]).Items)
		}
		bytes := d.MaxContextBytes
		if bytes == 0 && d.Need == nil {
			bytes = briefResult
		}
		if items*(bytes+Frame) > most {
			c.advise(dependency(c.checker, i, at), fmt.Sprintf("a prompt of %q has %s, so each of the %d results of %q has room for %s of it, headings included", t.Assignee, bytesize.Text(most), items, WrittenTitle(up), bytesize.Text(most/items)),
				"lower maxItems, raise maxPromptBytes, or let tasks before it write less")
		}
	}
}

// hides reports whether the caller may not see an input.
func (c *sizeCheck) hides(name string) bool {
	return c.options.Inputs[c.inputs[strings.ToLower(name)]].Classification > *c.options.UserAccepts
}
