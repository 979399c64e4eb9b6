package plan

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// checkFolder checks an input that is a folder.
func (in *Input) checkFolder(about subject) {
	switch {
	case in.Folder == nil:
	case in.Text != filetree.TextOf(in.Folder) || in.Envelope != nil:
		about.report("it has a Folder and something else", "set one of Text, Envelope and Folder", task.ErrInvalid)
	case in.Cut || in.MaxContextBytes != 0:
		about.report("a folder is never cut, and has no limit for a prompt", "leave Cut and MaxContextBytes out", task.ErrInvalid)
	}
}

// checkFiles checks what task i says about files, before its references are resolved.
func (c *checker) checkFiles(about func() subject, s *task.Spec) {
	if _, err := filetree.ParseGlobs(s.OutputFiles); err != nil {
		about().at("outputFiles").report(err.Error(), "", task.ErrInvalid)
	}
	for j := range s.DependsOn {
		for k, path := range s.DependsOn[j].Files {
			if err := pick.CheckAllow(path); err != nil {
				about().at("dependsOn", j, "files", k).report(err.Error(), "write a path such as /report.md or /src/**", task.ErrInvalid)
			}
		}
	}
	for j, u := range s.Uses {
		k, known := c.inputs[strings.ToLower(u.Name)]
		if !known {
			continue // reported already
		}
		if c.options.Inputs[k].Folder == nil {
			if u.At != "" {
				about().at("uses", j).report(fmt.Sprintf("at is for folders, and input %q is a text", u.Name), "name an input that is a folder, or remove at", task.ErrInvalid)
			}
			continue
		}
		if u.Item != "" {
			continue // its text is in the prompt
		}
		at := cmp.Or(u.At, u.Name)
		if out := leftOut(filetree.TreeOf(c.options.Inputs[k].Folder)); at == "." && out != "" {
			c.advise(about().at("uses", j), fmt.Sprintf("%s of input %q is left out: the workspace has its own", out, u.Name), "write at: FOLDER to put the input into a folder of the workspace")
		}
		isWildcard := func(name string) bool { return name == "*" || name == "**" } // which paths of files cannot tell from any name
		if names := strings.Split(at, "/"); !fs.ValidPath(at) || names[0] == brief.HistoryDir || names[0] == brief.OutputsDir || slices.ContainsFunc(names, isWildcard) {
			about().at("uses", j).report(fmt.Sprintf("a folder cannot be put at %q of the workspace", at), "write a path such as repo, or . for the workspace itself; history and outputs are reserved", task.ErrInvalid)
		}
	}
}

// leftOut names what a folder has where the workspace has folders of its own; empty if nothing.
func leftOut(t filetree.Tree) string {
	for _, dir := range []string{brief.HistoryDir, brief.OutputsDir} {
		if _, isFile := t[dir]; isFile {
			return "the file " + dir
		}
	}
	if t.Has(brief.HistoryDir) {
		return "the folder " + brief.HistoryDir
	}
	return ""
}

// checkFilesGrants reports files that task i can never get, or not use.
func (c *pathCheck) checkFilesGrants(i int) {
	t, gets := c.plan.Graph.Task(i), false
	for j := range t.DependsOn {
		files := t.DependsOn[j].Files
		c.checkOnConflict(i, j)
		if len(files) == 0 {
			continue
		}
		gets = true
		up := int(c.plan.Graph.Upstream(i)[j])
		at := func() subject { return dependency(c.checker, i, j) }
		if len(c.plan.Folders.mayLeave(up)) == 0 {
			at().report(fmt.Sprintf("task %q has no files", c.plan.Graph.Task(up).Title), "list its output files in outputFiles of that task", task.ErrInvalid)
			continue
		}
		if n := slices.IndexFunc(c.plan.Folders.layers[i], func(l FileLayer) bool { return l.Task == up }); n >= 0 {
			grant := c.plan.Folders.layers[i][n].Grant(c.plan, i)
			c.contradicts(at, &grant, c.plan.Graph.Task(up).Assignee, t.Assignee, nil)
		}
	}
	for _, u := range t.Uses {
		gets = gets || c.input(u).Folder != nil && u.Item == ""
	}
	if m := c.team.Config.Agents[c.plan.Members[i]]; gets && len(c.plan.Tools(i)) == 0 && m.Agent != nil && !m.UsesWorkspace() {
		c.advise(c.task(i), "the task has no tools, so of the files it gets only the list", "give it tools that read the workspace")
	}
	changes := func(tl *tool.Tool) bool { return tl.Effect != tool.None }
	if m := c.team.Config.Agents[c.plan.Members[i]]; len(t.OutputFiles) > 0 && m.Agent != nil && !m.UsesWorkspace() && !slices.ContainsFunc(m.Tools, changes) && !slices.ContainsFunc(holderTools(c.plan, i), changes) {
		c.advise(c.task(i).at("outputFiles"), fmt.Sprintf("agent %q has no tool that writes files, so there are no output files", t.Assignee), "give it such tools, for instance file_write, or leave OutputFiles out")
	}
}

// isPattern reports whether a glob may match other files in each round.
func isPattern(glob string) bool { return strings.ContainsAny(glob, "*?[{") }

// checkDroppedFiles warns of loops whose rounds begin without the files of the round before.
func (c *pathCheck) checkDroppedFiles() {
	for i := range c.plan.Graph.Len() {
		t := c.plan.Graph.Task(i)
		if of := t.Instance; of == nil || of.Round != 1 || of.Rounds < 2 || !slices.ContainsFunc(t.OutputFiles, isPattern) || c.plan.Folders.reachesLaterRounds(i) {
			continue
		}
		c.advise(c.task(i).at("outputFiles"), "each round begins without the files of the round before, so only those of the last round are left",
			"to build one folder, write workspace: {round: previous}")
	}
}

// Folder returns where in the workspace the files of use j of task i belong, and whether the
// input is a folder.
func (p *Plan) Folder(i, j int) (at string, ok bool) {
	u := p.Graph.Task(i).Uses[j]
	if k, known := p.InputIndex[strings.ToLower(u.Name)]; !known || p.Options().Inputs[k].Folder == nil || u.Item != "" {
		return "", false
	}
	return cmp.Or(u.At, u.Name), true
}

// isFiles reports whether a delivery has files.
func (p *Plan) isFiles(i int, a *delivery) bool {
	if a.part.kind != handoff.Input {
		return a.part.kind == handoff.Files
	}
	_, folder := p.Folder(i, int(a.part.n))
	return folder
}

// filesEdge adds a layer of the folder that a task gets. The files of a task are part of what it makes, and no path of its
// result says which part. See addGranted for by.
func (b *flowBuilder) filesEdge(i, n, to int, a *delivery, by *gate.Terms) {
	l := &b.plan.Folders.layers[i][n]
	grant, source := l.Grant(b.plan, i), l.Input
	if to != i {
		grant.Terms = by
	}
	if l.Task >= 0 {
		source = b.results + l.Task
	}
	e := b.passage(source, grant.Terms, nil, a)
	e.Task, e.Line, e.Rule, e.Delivers, e.Note = to, cmp.Or(e.Line, grant.Line), cmp.Or(e.Rule, gate.RuleFiles), pick.Everything(), "output files"
	if l.Task < 0 {
		e.Note = "files of a dependency"
	}
	b.graph.Edges = append(b.graph.Edges, e)
}
