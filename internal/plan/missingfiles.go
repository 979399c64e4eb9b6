package plan

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/task"
)

// MissingFiles are files that are in the folder which a dependency leaves, and that a task does not get.
type MissingFiles struct {
	Kind handoff.SourceKind `json:"kind"`           // files of the dependency itself, or folder for what it was given
	Task task.ID            `json:"task,omitempty"` // whose output files they are
	Name string             `json:"name"`           // its title, or the input's name
	From string             `json:"from"`           // the agent that makes them, or user
	Via  string             `json:"via"`            // the title of the dependency
	Why  string             `json:"why"`
}

// missingFiles returns the files that task i does not get of its dependencies; nil if its agent can do nothing with files.
func missingFiles(p *Plan, i int) (list []MissingFiles) {
	t := p.Graph.Task(i)
	if Joins(t) || len(p.Tools(i)) == 0 && !p.Roster().Config.Agents[p.Members[i]].UsesWorkspace() {
		return nil
	}
	f := p.Folders
	if f == nil {
		f = &Folders{p, nil}
	}
	given := f.To(i)
	for j := range t.DependsOn[:len(t.DependsOn)-t.Reads] {
		d, up := &t.DependsOn[j], int(p.Graph.Upstream(i)[j])
		for _, l := range f.mayLeave(up) {
			isSame := func(o FileLayer) bool { return o.IsOf(&l) }
			if l.isUsed(p, i) || slices.ContainsFunc(given, isSame) {
				continue
			}
			l.Direct = l.Task == up
			list = append(list, l.missing(p, WrittenTitle(p.Graph.Task(up)), whyMissing(d)))
		}
	}
	return list
}

// whyMissing says why a dependency does not grant the files of a layer.
func whyMissing(d *task.Ref) string {
	if len(d.Files) == 0 {
		return "the dependency grants no files"
	}
	paths := make([]string, len(d.Files))
	for i, path := range d.Files {
		paths[i] = string(path)
	}
	return "the dependency grants only " + strings.Join(paths, ", ")
}

// missing returns the files of a layer, as those that a task does not get.
func (l *FileLayer) missing(p *Plan, via, why string) MissingFiles {
	m := MissingFiles{Kind: handoff.Folder, Name: l.Source(p).Name, From: l.Producer(p), Via: via, Why: why}
	if l.Task >= 0 {
		m.Task, m.Name = p.Graph.Task(l.Task).ID, WrittenTitle(p.Graph.Task(l.Task))
	}
	if l.Direct {
		m.Kind = handoff.Files
	}
	return m
}

// viaOf returns the titles of the dependencies that grant task i a layer which none of them made.
func (l *FileLayer) viaOf(p *Plan, i int) (titles []string) {
	if l.Direct {
		return nil
	}
	for _, j := range l.Via {
		if title := WrittenTitle(p.Graph.Task(int(p.Graph.Upstream(i)[j]))); !slices.Contains(titles, title) {
			titles = append(titles, title)
		}
	}
	return titles
}
