package planning

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/task"
)

// verifySchema is the schema of verify.
func verifySchema(r *Rules) any {
	judge := object{Properties: map[string]any{"agent": oneOf(r.Agents), "lens": ofType("string"), "dependsOn": dependsOnSchema(r)}, Required: []string{"agent"}}
	if r.MayGrant.Inputs || r.MayPlan.ForEach {
		judge.Properties["uses"] = listOf(ofType("string"))
	}
	if r.MayGrant.Tools {
		judge.Properties["tools"] = listOf(oneOf(r.tools("")))
	}
	return object{
		Properties: map[string]any{
			"judges": listOf(anyOf(oneOf(r.Agents), judge)), "mode": oneOf([]string{"refute", "lens"}), "quorum": ofType("integer"), "maxRounds": ofType("integer"),
			"onDissent": oneOf([]string{"revise", "reject", "keep"}),
		},
		Required: []string{"judges"},
	}
}

// verify reads who judges the result of a task.
func (r *reader) verify(v any) {
	verify := &task.Verify{}
	r.spec.Verify = verify
	members, keys := r.object(v, []string{"judges", "mode", "quorum", "maxRounds", "onDissent"}, `write {"judges": ["name of an agent"]}`, "verify")
	for _, key := range keys {
		v, at := members[key], []any{"verify", key}
		switch key {
		case "judges":
			verify.Judges = r.judges(v, at...)
		case "mode":
			verify.Mode, _ = r.text(v, at...)
		case "quorum":
			verify.Quorum = r.integer(v, 1, maxJudges, "write how many judges must accept", at...)
		case "maxRounds":
			verify.MaxRounds = r.integer(v, 1, 100, "write how many rounds there may be, from 1 to 100", at...)
		case "onDissent":
			verify.OnDissent, _ = r.text(v, at...)
		}
	}
	if verify.MaxRounds == 0 && (verify.OnDissent == "" || verify.OnDissent == "revise") {
		verify.MaxRounds = defaultRounds // so that tasks are counted as they will be written out
	}
}

// defaultRounds is how many rounds judges have unless the plan says it, as in [task.Verify].
const defaultRounds = 2

// judges reads a list of judges.
func (r *reader) judges(v any, path ...any) (judges []task.Judge) {
	list, ok := v.([]any)
	switch {
	case !ok:
		r.bad(task.ErrInvalid, name(path)+": "+describe(v)+" where a list of judges belongs", `write ["name of an agent"]`, path...)
		return nil
	case len(list) > maxJudges:
		r.bad(task.ErrInvalid, fmt.Sprintf("%s: %d judges, at most %d", name(path), len(list), maxJudges), "name only those that the result cannot do without", path...)
		return nil
	}
	for i, item := range list {
		judges = append(judges, r.judge(item, append(slices.Clip(path), i)...))
	}
	return judges
}

// judge reads a judge: the name of an agent, or an object.
func (r *reader) judge(item any, path ...any) task.Judge {
	judge := task.Judge{Tools: []string{}}
	members, is := item.(map[string]any)
	if !is {
		judge.Agent = r.agent(item, path...)
		return judge
	}
	_, keys := r.object(item, []string{"agent", "lens", "uses", "dependsOn", "tools"}, "", path...)
	for _, key := range keys { // the agent is the first of them
		v, at := members[key], append(slices.Clip(path), key)
		switch key {
		case "agent":
			judge.Agent = r.agent(v, at...)
		case "lens":
			if judge.Lens, _ = r.text(v, at...); judge.Lens != "" {
				r.words(judge.Lens, key, at...)
			}
		case "uses":
			judge.Uses = r.usedInputs(v, r.judgedItem(), at...)
		case "dependsOn":
			judge.DependsOn = r.dependencies(v, at...)
		case "tools":
			judge.Tools = r.calledTools(v, judge.Agent, at...)
		}
	}
	return judge
}

// judgedItem returns the name of the item that the task has, and that its judges may be granted.
func (r *reader) judgedItem() string {
	switch f := r.spec.ForEach; {
	case f == nil:
		return ""
	case f.As != "":
		return f.As
	}
	return "item"
}
