package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A folderTask is a task of a drawn team: a plain one, one that two rounds of a loop perform, or one for each of two items.
type folderTask struct {
	title      string
	kind       string // "plain", "loop" or "list"
	level      label.Classification
	tells      label.Classification // of what its status tells: the conditions of loops and lists
	on         []task.Ref
	onConflict string
	changes    [2][]change // of each round or item
	passed     string      // glob of the files that it passes to a copy of its agent; empty if it has none
	copied     [2][]change // by the copy

	mu      sync.Mutex
	seen    map[string]map[string]string // by round or item, such as w1#2; of its copy, copy of w1#2
	prompts map[string]string
}

// name returns the title by which other tasks depend on a drawn task.
func (d *folderTask) name() string {
	if d.kind == "loop" {
		return "loop " + d.title
	}
	return d.title
}

// instance returns the title of a round or an item.
func (d *folderTask) instance(n int) string {
	switch d.kind {
	case "loop":
		return fmt.Sprintf("%s#%d", d.title, n+1)
	case "list":
		return fmt.Sprintf("%s[%d]", d.title, n+1)
	}
	return d.title
}

// copyGoal is what the copy of an agent is to do.
const copyGoal = "Work on these files."

func copyOf(instance string) string { return "copy of " + instance }

// instances returns how many rounds or items there are.
func (d *folderTask) instances() int {
	if d.kind == "plain" {
		return 1
	}
	return 2
}

// member returns the agent of a drawn task. Its prompt says which round or item it is for.
func (d *folderTask) member(t require.TestingT) engine.Member {
	d.seen, d.prompts = map[string]map[string]string{}, map[string]string{}
	work := &tool.Tool{
		Name: "work_" + d.title, Parameters: json.RawMessage(`{"type":"object"}`), ReadsWorkspace: true,
		Options: tool.Options{Effect: tool.Workspace, Accepts: label.Secret, Produces: new(label.Public)},
	}
	work.Run = func(_ context.Context, c tool.Call) (tool.Result, error) {
		var of struct {
			N      int
			ByCopy bool
		}
		require.NoError(t, json.Unmarshal(c.Arguments, &of))
		root, err := c.Workspace()
		require.NoError(t, err)
		d.mu.Lock()
		defer d.mu.Unlock()
		w := &worker{seen: filesOf(t, root)}
		at, changes := d.instance(of.N), d.changes[of.N]
		if of.ByCopy {
			at, changes = copyOf(at), d.copied[of.N]
		}
		d.seen[at] = w.seen
		for _, c := range changes {
			w.apply(t, root, c)
		}
		return tool.Result{Text: "done"}, nil
	}
	m := engine.Member{Name: d.title, Accepts: d.level, Produces: &d.level, Tools: []*tool.Tool{work}, AllowUntrusted: []string{work.Name}}
	if d.passed != "" {
		m.Spawn = &plan.Spawning{Max: 2, Files: []string{"**"}}
	}
	m.Agent = agent.New(byTurn(func(turn int, r llm.Request) llm.Response {
		prompt, n := r.Messages[0].Text, 0
		for _, m := range r.Messages {
			if m.Role == llm.User {
				prompt = m.Text
				break
			}
		}
		if strings.Contains(prompt, "item-2") || strings.Contains(prompt, d.title+"-round-1") {
			n = 1
		}
		at, isCopy := d.instance(n), strings.Contains(prompt, copyGoal)
		if isCopy {
			at = copyOf(at)
		}
		switch {
		case turn == 1:
			d.mu.Lock()
			defer d.mu.Unlock()
			d.prompts[at] = prompt
			return llm.Response{ToolCalls: []llm.ToolCall{call(work.Name, fmt.Sprintf(`{"n":%d,"byCopy":%t}`, n, isCopy))}}
		case turn == 2 && d.passed != "" && !isCopy:
			goal := copyGoal
			if n == 1 {
				goal += " item-2"
			}
			return llm.Response{ToolCalls: []llm.ToolCall{call(plan.SpawnAgent, jsonOf(map[string]any{"goal": goal, "files": []string{d.passed}, "tools": []string{work.Name}}))}}
		}
		return llm.Response{Text: fmt.Sprintf(`{"n":1,"text":"%s-round-%d"}`, d.title, n+1)}
	}), agent.Options{})
	return m
}

// spec returns a drawn task as it is written.
func (d *folderTask) spec() task.Spec {
	s := task.Spec{Title: d.title, Description: "Work.", Assignee: d.title, Classification: d.level, OutputFiles: []string{"**"}, DependsOn: slices.Clone(d.on)}
	if len(s.DependsOn) > 0 {
		s.DependsOn[0].OnConflict = d.onConflict
	}
	switch d.kind {
	case "loop":
		s.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"text":{"type":"string"}},"required":["n","text"]}`)
		return task.Spec{Title: d.name(), Repeat: &task.Repeat{MaxRounds: 2, Until: task.Equals(d.title, "/n", 2), Output: d.title, Tasks: []task.Spec{s}}}
	case "list":
		s.ForEach = &task.ForEach{Input: "list", MaxItems: 2}
	}
	return s
}

// drawFolderTasks draws tasks that depend on some of those before.
func drawFolderTasks(t *rapid.T) (all []*folderTask) {
	paths := []task.Path{task.Whole, task.Whole, "/d/**"}
	for i := range rapid.IntRange(3, 6).Draw(t, "tasks") {
		d := &folderTask{title: fmt.Sprint("w", i)}
		d.kind = rapid.SampledFrom([]string{"plain", "plain", "plain", "loop", "list"}).Draw(t, "kind")
		d.level = rapid.SampledFrom([]label.Classification{label.Internal, label.Internal, label.Confidential}).Draw(t, "level")
		for _, up := range all {
			if rapid.IntRange(0, 2).Draw(t, "depends") > 0 && up.tells <= d.level {
				d.tells = max(d.tells, up.tells)
				ref := filesFrom(up.name(), rapid.SampledFrom(paths).Draw(t, "granted"))
				if up.kind == "list" {
					ref.Task, ref.Each = "", up.name()
				}
				d.on = append(d.on, ref)
			}
		}
		if d.kind == "loop" {
			d.on = append(d.on, task.Ref{Task: d.title, Round: task.Previous, Files: []task.Path{task.Whole}, Optional: true})
		}
		if names := []string{"", task.KeepBoth}; len(d.on) > 0 {
			for _, ref := range d.on {
				names = append(names, cmp.Or(ref.Task, ref.Each))
			}
			d.onConflict = rapid.SampledFrom(names).Draw(t, "onConflict")
		}
		d.passed = rapid.SampledFrom([]string{"", "", "**", "d/**"}).Draw(t, "passed")
		for n := range d.instances() {
			d.changes[n] = drawChanges(t, d.instance(n))
			if d.passed != "" {
				d.copied[n] = drawChanges(t, copyOf(d.instance(n)))
			}
		}
		if d.kind != "plain" { // what runs in it is as sensitive as its files
			d.tells = d.level
		}
		all = append(all, d)
	}
	return all
}

// drawChanges draws what is done to the two files of a folder, each at most once.
func drawChanges(t *rapid.T, by string) (list []change) {
	for _, name := range []string{"a", "d/b"} {
		if text := rapid.SampledFrom([]string{"by " + by, "same", "=", "", "none"}).Draw(t, name); text != "none" {
			list = append(list, change{name, text})
		}
	}
	return list
}

// startFolders runs drawn tasks, or resumes their run.
func startFolders(t *rapid.T, all []*folderTask, j *memory) *engine.Result {
	config, specs := engine.Config{}, []task.Spec{}
	for _, d := range all {
		config.Agents, specs = append(config.Agents, d.member(t)), append(specs, d.spec())
	}
	tm, err := engine.New(config)
	require.NoError(t, err)
	res, err := start(context.Background(), tm, specs, &engine.RunOptions{
		RunID: "r", Journal: j, UserAccepts: new(label.Secret), Inputs: []engine.Input{{Name: "list", Text: `["item-1","item-2"]`}},
	})
	require.NoError(t, err)
	return res
}

// A modelVersion is a version of a file as the model of a folder has it.
type modelVersion struct {
	id     string // of the task that wrote or chose it, with its path
	order  int    // of that task
	title  string // of that task
	called string // the same without round and item
	name   string
	text   string // "" if it was removed
	level  label.Classification
	given  map[string]bool // the IDs of all versions that its writer was given
	over   []*modelVersion // of a choice: what it replaces
	stands []*modelVersion // of a choice: what follows all of these follows it
}

func (v *modelVersion) follows(o *modelVersion) bool {
	if v.given == nil {
		return slices.Contains(v.over, o)
	}
	return v.given[o.id] || len(o.stands) > 0 && !slices.ContainsFunc(o.stands, func(s *modelVersion) bool { return !v.follows(s) })
}

// A modelChoice says that a task chose among the versions that it was given.
type modelChoice struct {
	of     *modelTask
	inside bool // only in the folder d
}

// A modelTask is a plain task, a round, an item or a loop in the model of a folder: a map of versions with their parents.
type modelTask struct {
	id, onConflict string
	order          int
	works          bool
	seen, copySees map[string]string
	given          map[string]bool
	offered, left  []*modelVersion
	choices        []modelChoice // of the tasks before
	leaves         []modelChoice // for the tasks behind
}

// grants adds what a dependency grants of the folder that another task left.
func (m *modelTask) grants(up *modelTask, inside bool) {
	for _, v := range up.left {
		if inside && !strings.HasPrefix(v.name, "d/") {
			continue
		}
		k := slices.IndexFunc(m.offered, func(o *modelVersion) bool { return o.id == v.id })
		if k < 0 {
			m.offered = append(m.offered, v)
		} else if v.level > m.offered[k].level {
			m.offered[k] = v
		}
	}
	for _, c := range up.leaves {
		c.inside = c.inside || inside
		k := slices.IndexFunc(m.choices, func(o modelChoice) bool { return o.of == c.of })
		if k < 0 {
			m.choices = append(m.choices, c)
		} else {
			m.choices[k].inside = m.choices[k].inside && c.inside
		}
	}
	slices.SortStableFunc(m.choices, func(c, d modelChoice) int { return cmp.Compare(c.of.order, d.of.order) })
}

// newestVersions returns the versions that no other one follows; one of them if all have one text.
func newestVersions(all []*modelVersion) []*modelVersion {
	newest := slices.DeleteFunc(slices.Clone(all), func(v *modelVersion) bool {
		return slices.ContainsFunc(all, func(o *modelVersion) bool { return o != v && o.follows(v) })
	})
	if len(newest) == 0 {
		newest = all
	}
	if !slices.ContainsFunc(newest, func(v *modelVersion) bool { return v.text != newest[0].text }) {
		return newest[:1]
	}
	return newest
}

// choose returns what a task makes of several versions of a file; nothing if it has a conflict.
func (m *modelTask) choose(name string, newest, all []*modelVersion) (made []*modelVersion) {
	made = []*modelVersion{{id: m.id + "!" + name, name: name, over: all, stands: newest}}
	switch m.onConflict {
	case "":
		return nil
	case task.KeepBoth:
		made[0].title, made[0].order = newest[0].title, newest[0].order
		for _, v := range newest {
			if ext := path.Ext(name); v.text != "" {
				at := strings.TrimSuffix(name, ext) + "." + strings.NewReplacer("#", "-", "[", "-", "]", "-", " ", "-").Replace(v.title) + ext
				made = append(made, &modelVersion{id: m.id + "!" + at, title: v.title, called: v.called, order: v.order, name: at, text: v.text})
			}
		}
		return made
	}
	var named *modelVersion
	for _, v := range newest {
		switch isNamed := v.called == m.onConflict; {
		case !isNamed:
		case named == nil || named.title == v.title || strings.Contains(v.title, "#") && v.order > named.order:
			named = v
		case !(strings.Contains(v.title, "#") && v.order < named.order):
			return nil
		}
	}
	if named == nil {
		return nil
	}
	made[0].title, made[0].called, made[0].order, made[0].text, made[0].stands = named.title, named.called, named.order, named.text, []*modelVersion{named}
	return made
}

// work performs a task.
func (m *modelTask) work(d *folderTask, n int) {
	versions := map[string][]*modelVersion{}
	for _, v := range m.offered {
		if v.level <= d.level && !slices.ContainsFunc(versions[v.name], func(o *modelVersion) bool { return o.id == v.id }) {
			versions[v.name] = append(versions[v.name], v)
		}
	}
	add := func(made []*modelVersion) {
		for _, v := range made {
			versions[v.name] = append(versions[v.name], v)
		}
	}
	for _, c := range m.choices {
		for _, name := range slices.Sorted(maps.Keys(versions)) {
			given := slices.DeleteFunc(slices.Clone(versions[name]), func(v *modelVersion) bool {
				return !c.of.given[v.id] || strings.HasPrefix(v.id, c.of.id+"!") || c.inside && !strings.HasPrefix(name, "d/")
			})
			if newest := newestVersions(given); len(given) > 0 && len(newest) > 1 {
				add(c.of.choose(name, newest, given))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		newest := newestVersions(versions[name])
		if len(newest) == 1 {
			continue
		}
		made := m.choose(name, newest, versions[name])
		if made == nil {
			return
		}
		for k, v := range made[1:] {
			if versions[v.name] != nil || slices.ContainsFunc(made[1:1+k], func(o *modelVersion) bool { return o.name == v.name }) {
				return
			}
		}
		add(made)
	}
	m.works, m.seen, m.given = true, map[string]string{}, map[string]bool{}
	for name, all := range versions {
		if text := newestVersions(all)[0].text; text != "" {
			m.seen[name] = text
		}
		for _, v := range all {
			m.given[v.id] = true
		}
	}
	m.left, m.leaves = m.offered, m.choices
	files := maps.Clone(m.seen)
	written := applied(files, d.changes[n])
	if d.passed != "" {
		m.copySees = map[string]string{}
		for name, text := range files {
			if isInside(d.passed, name) {
				m.copySees[name] = text
			}
		}
		copied := maps.Clone(m.copySees)
		for _, name := range applied(copied, d.copied[n]) {
			_, isGiven := m.copySees[name]
			old, exists := files[name]
			at := name
			if exists && !isGiven && old != copied[name] {
				at = besidesIn(files, name, copied[name])
			}
			if text := copied[name]; text != "" {
				files[at] = text
			} else {
				delete(files, at)
			}
			written = append(written, at)
		}
	}
	slices.Sort(written)
	for _, name := range slices.Compact(written) {
		if files[name] == "" && m.seen[name] == "" { // it made and removed it
			continue
		}
		m.left = append(slices.Clip(m.left), &modelVersion{id: m.id + "/" + name, title: d.instance(n), called: d.title, order: m.order, name: name, text: files[name], level: d.level, given: m.given})
	}
	if m.onConflict != "" {
		m.leaves = append(slices.Clip(m.leaves), modelChoice{of: m})
	}
}

// besidesIn returns where a file is put that the copy of an agent wrote without having seen the one of its name.
func besidesIn(files map[string]string, name, text string) (at string) {
	at = name + ".call_2_1"
	for n := 2; files[at] != "" && files[at] != text; n++ {
		at = fmt.Sprintf("%s.call_2_1-%d", name, n)
	}
	return at
}

// isInside reports whether a file matches a glob of files that are passed.
func isInside(glob, name string) bool { return glob == "**" || strings.HasPrefix(name, "d/") }

// applied makes changes to files, and returns the paths of those that were written or removed.
func applied(files map[string]string, changes []change) (written []string) {
	for _, c := range changes {
		old, exists := files[c.name]
		switch {
		case !exists && (c.text == "" || c.text == "="):
			continue
		case c.text == "=":
			c.text = old
		}
		if written = append(written, c.name); c.text == "" {
			delete(files, c.name)
		} else {
			files[c.name] = c.text
		}
	}
	return written
}

// as returns what a loop leaves whose last round is m. That it has ended tells what its condition compared.
func (m *modelTask) as(name string, level label.Classification) *modelTask {
	loop := *m
	loop.left = nil
	for _, v := range m.left {
		of := *v
		if of.level = max(of.level, level); strings.HasPrefix(v.id, m.id+"/") {
			of.title, of.called = name, name
		}
		loop.left = append(loop.left, &of)
	}
	return &loop
}

// modelOf performs all tasks in the model.
func modelOf(all []*folderTask) map[string]*modelTask {
	m, order := map[string]*modelTask{}, 0
	for _, d := range all {
		for n := range d.instances() {
			order++
			of := &modelTask{id: d.instance(n), onConflict: d.onConflict, order: order}
			for _, ref := range d.on {
				inside := ref.Files[0] != task.Whole
				switch {
				case ref.Round != "" && n == 0:
				case ref.Round != "":
					of.grants(m[d.instance(n-1)], inside)
				case ref.Each != "":
					of.grants(m[ref.Each+"[1]"], inside)
					of.grants(m[ref.Each+"[2]"], inside)
				default:
					of.grants(m[ref.Task], inside)
				}
			}
			if d.kind != "loop" || n == 0 || m[d.instance(0)].works {
				of.work(d, n)
			}
			if m[of.id] = of; d.kind == "loop" {
				m[d.name()] = of.as(d.name(), d.level)
			}
		}
	}
	return m
}

// Whatever tasks do to the files of a folder, each sees the newest versions that it may have, also in a run that is resumed.
// What it may not have changes nothing of that.
//
// Requirement: G54, G67.
func TestFoldersAreAsTheirModel(t *testing.T) {
	t.Parallel()
	conflicts, choices, compared := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		all := drawFolderTasks(t)
		m := modelOf(all)
		agree := func(res *engine.Result, isResumed bool) {
			for _, d := range all {
				for n := range d.instances() {
					title := d.instance(n)
					for at, want := range map[string]map[string]string{title: m[title].seen, copyOf(title): m[title].copySees} {
						if seen := d.seen[at]; seen != nil || !isResumed {
							require.Equal(t, want, seen, "%s: %v", at, res.Err())
						}
					}
					of, ok := res.Task(title)
					require.Equal(t, m[title].works, ok && of.Status == task.Completed, "%s: %v", title, res.Err())
					if ok && of.Status == task.Failed && (d.kind != "loop" || n == 0 || m[d.instance(0)].works) { // else the round before failed
						conflicts++
						require.Equal(t, codes.FilesConflict, of.Error.Code)
					}
				}
			}
		}
		j := &memory{}
		res := startFolders(t, all, j)
		agree(res, false)
		for _, of := range m {
			choices += len(of.choices)
		}
		seen, prompts := map[string]map[string]string{}, map[string]string{}
		for _, d := range all {
			if d.level == label.Internal {
				maps.Copy(seen, d.seen)
				maps.Copy(prompts, d.prompts)
			}
		}

		agree(startFolders(t, all, after(j.history(1+rapid.IntRange(0, 999).Draw(t, "batches of 1000")*(j.len()-1)/1000))), true)

		if !changeHidden(t, all) || !maps.EqualFunc(m, modelOf(all), func(a, b *modelTask) bool { return a.works == b.works }) {
			return
		}
		compared++
		startFolders(t, all, &memory{})
		for _, d := range all {
			if d.level == label.Internal {
				for title := range d.seen {
					require.Equal(t, seen[title], d.seen[title], title)
					require.Equal(t, prompts[title], d.prompts[title], title)
				}
			}
		}
	})
	require.NotZero(t, conflicts)
	require.NotZero(t, choices)
	require.NotZero(t, compared)
}

// changeHidden changes what a task does whose files are above others, and reports whether there is one.
func changeHidden(t *rapid.T, all []*folderTask) bool {
	hidden := slices.DeleteFunc(slices.Clone(all), func(d *folderTask) bool { return d.level == label.Internal })
	if len(hidden) == 0 {
		return false
	}
	d := rapid.SampledFrom(hidden).Draw(t, "hidden")
	n := rapid.IntRange(0, d.instances()-1).Draw(t, "instance")
	if d.passed != "" && rapid.Bool().Draw(t, "by the copy") {
		d.copied[n] = drawChanges(t, "other")
	} else {
		d.changes[n] = drawChanges(t, "other")
	}
	return true
}
