package specfile

import (
	"slices"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// readVerify reads who judges the result of a task.
func (r *reader) readVerify(n *node) *task.Verify {
	if n == nil {
		return nil
	}
	r.subject = r.mine
	f, v := r.part(n, "verify", "verify: "), &task.Verify{}
	verifyMembers(v).read(f.own)
	v.Judges = named(r, f.own("judges"), "judge", "agent", "name of an agent", func(name string, j *fields) task.Judge {
		judge := task.Judge{Agent: name}
		if j != nil {
			judgeMembers(&judge).read(j.own)
			judge.Uses, judge.DependsOn, judge.Tools = append([]task.Use(nil), r.readUses(j.own("uses"))...), append([]task.Ref(nil), r.dependencies(j)...), r.toolsOfTask(j.own("tools"), judge.Agent)
		}
		return judge
	})
	return v
}

func verifyMembers(v *task.Verify) members {
	return members{{"mode", &v.Mode}, {"quorum", &v.Quorum}, {"maxRounds", &v.MaxRounds}, {"onDissent", &v.OnDissent}}
}

func judgeMembers(j *task.Judge) members {
	return members{{"agent", &j.Agent}, {"lens", &j.Lens}}
}

// verifyNode writes who judges the result of a task; nil if nobody does.
func verifyNode(s *saver, v *task.Verify) *node {
	if v == nil {
		return nil
	}
	n, judges := objectNode(), listNode()
	for i := range v.Judges {
		j := &v.Judges[i]
		tools := toolsNode(s, j.Tools)
		if j.Lens == "" && len(j.Uses)+len(j.DependsOn) == 0 && tools == nil {
			judges.add(textNode(j.Agent))
			continue
		}
		judge := judgeMembers(j).node()
		judge.set("uses", namesNode(j.Uses, "name", useMembers))
		judge.set("dependsOn", namesNode(j.DependsOn, "task", dependencyMembers))
		judge.set("tools", tools)
		judges.add(judge)
	}
	n.set("judges", judges)
	verifyMembers(v).write(n)
	return n
}

// usesOf returns the inputs that a task and its judges use.
func usesOf(s *task.Spec) []task.Use {
	uses := s.Uses
	if s.Verify != nil {
		for i := range s.Verify.Judges {
			uses = slices.Concat(uses, s.Verify.Judges[i].Uses)
		}
	}
	return uses
}

// plainVerify returns judges of whom only the references can be wrong; nil if they could not be read.
func plainVerify(v *task.Verify) *task.Verify {
	if v == nil {
		return nil
	}
	plain := task.Verify{OnDissent: "keep"} // which any task can have
	for i := range v.Judges {
		j := task.Judge{Agent: v.Judges[i].Agent}
		j.DependsOn, j.Uses = plainReferences(v.Judges[i].DependsOn, v.Judges[i].Uses)
		if j.Agent != "" { // else it could not be read
			plain.Judges = append(plain.Judges, j)
		}
	}
	if len(plain.Judges) == 0 {
		return nil
	}
	return &plain
}

// plainReferences returns references without forms and parts.
func plainReferences(deps []task.Ref, uses []task.Use) ([]task.Ref, []task.Use) {
	deps, uses = slices.Clone(deps), slices.Clone(uses)
	for k := range deps {
		deps[k].As, deps[k].Need = task.Output, nil
	}
	for k := range uses {
		uses[k].Need, uses[k].Reveal = nil, nil
	}
	return deps, uses
}

// addJudges adds the titles of judges and verdicts to those of tasks; not known if the tasks cannot be
// written out.
func (f *File) addJudges(known nameList) nameList {
	titles, err := JudgesOf(f.Tasks)
	if err != nil {
		return nameList{}
	}
	for _, title := range titles {
		known.add(title, naming.Normalize(title))
	}
	return known
}

// JudgesOf returns the titles of the judges of tasks and of their verdicts, as prompts have them.
func JudgesOf(tasks []task.Spec) (titles []string, err error) {
	hasJudges := false
	for s := range AllTasks(tasks) {
		hasJudges = hasJudges || s.Verify != nil
	}
	if !hasJudges {
		return nil, nil
	}
	all, _, err := task.Unroll(tasks)
	seen := map[string]bool{}
	for i := range all {
		if in := all[i].Instance; in != nil && (in.Judges || all[i].CountsJudges()) && !seen[in.Title] {
			seen[in.Title] = true
			titles = append(titles, in.Title)
		}
	}
	return titles, err
}
