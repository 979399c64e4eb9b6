package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/workspace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// ErrOutputFiles reports output files that cannot be results.
var ErrOutputFiles = errors.New("the output files cannot be kept")

// ErrFilesConflict reports two dependencies that changed one file in two ways, or a path that
// is a file in one place and a folder in another.
var ErrFilesConflict = errors.New("the files of the task conflict")

// maxOutputFiles bounds the texts of the output files of a task, in bytes.
const maxOutputFiles = 4 << 20

// givenTime is the time of files as a task was given them, so that it shows which ones were written again.
var givenTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// writeFiles writes files into a workspace. Those that begin with #! are executable.
func writeFiles(root *os.Root, files filetree.Tree) error {
	for _, name := range files.Paths() {
		text := files[name]
		if text == nil {
			continue
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(*text, "#!") {
			mode = 0o755
		}
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(name, []byte(*text), mode); err != nil {
			return err
		}
		if err := root.Chtimes(name, givenTime, givenTime); err != nil {
			return err
		}
	}
	return nil
}

// changedFiles returns the files of a workspace that match globs and were written, also again with the same text, or
// removed.
func changedFiles(root *os.Root, globs []string, given filetree.Tree) (filetree.Tree, error) {
	found, skipped, err := filetree.Read(workspace.FS(root), []string{brief.HistoryDir + "/**", brief.OutputFile(record.CallPrefix + "*")})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutputFiles, err)
	}
	changed := filetree.Tree{}
	for name, text := range found {
		if filetree.Matches(globs, name) && (!filetree.SameText(given[name], text) || isWritten(root, name)) {
			changed[name] = text
		}
	}
	for name := range given {
		if found[name] == nil && filetree.Matches(globs, name) && !hasReplaced(changed, name) {
			changed[name] = nil
		}
	}
	for _, name := range skipped {
		if filetree.Matches(globs, name) {
			return nil, fmt.Errorf("%w: %s is not a UTF-8 text", ErrOutputFiles, name)
		}
	}
	if n := changed.Bytes(); n > maxOutputFiles {
		return nil, fmt.Errorf("%w: they have %d bytes, at most %d", ErrOutputFiles, n, maxOutputFiles)
	}
	return changed, nil
}

// isWritten reports whether a file has another time than it was given with.
func isWritten(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && !info.ModTime().Equal(givenTime)
}

// hasReplaced reports whether a file is a folder now, or its folder a file, which says that it was removed.
func hasReplaced(changed filetree.Tree, name string) bool {
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if changed[above] != nil {
			return true
		}
	}
	return changed.Has(name)
}

// outputsOf makes the output files of a task a result of their own, which is as sensitive as
// its answer and expires with it. Its text has the files, and its structured part what they
// were before, which only the caller reads. given are the IDs of what the files in the workspace were from: their versions
// are older than these.
func outputsOf(answer *envelope.Envelope, changed, before filetree.Tree, given []envelope.ID) (*envelope.Envelope, error) {
	h := answer.Header()
	h.ID += "/files"
	for _, id := range given {
		if !slices.Contains(h.DerivedFrom, id) {
			h.DerivedFrom = append(slices.Clip(h.DerivedFrom), id)
		}
	}
	v, err := jsonvalue.Parse(before.JSON())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutputFiles, err)
	}
	return envelope.New(h, envelope.Text(changed.JSON()).WithStructured(v))
}

// takeOutputs makes the files that the agent left in its workspace part of its result. There is
// no workspace unless the agent calls tools or is a command.
func takeOutputs(o purpose, result *envelope.Envelope) error {
	a, ok := o.(*attempt)
	if !ok || a.conversation == nil {
		return nil
	}
	if !a.hasFiles.Load() {
		if len(a.task.OutputFiles) > 0 {
			warnNoOutputs(a)
		}
		return nil
	}
	if err := checkCommandFiles(a); err != nil || len(a.task.OutputFiles) == 0 {
		return err
	}
	root, err := a.files()
	if err != nil {
		return err
	}
	given, from := a.given.delivered()
	tree, err := changedFiles(root, a.task.OutputFiles, given)
	if err != nil {
		return err
	}
	if len(tree) == 0 {
		warnNoOutputs(a)
	}
	a.outputs, err = outputsOf(result, tree, versionsBefore(given, tree), from)
	return err
}

// warnNoOutputs warns that the task has no output files.
func warnNoOutputs(a *attempt) {
	a.reply.Warnings = append(slices.Clone(a.reply.Warnings), fmt.Sprintf("task %q has changed no file that matches its output files (%s)", a.task.Title, strings.Join(a.task.OutputFiles, ", ")))
}

// versionsBefore returns the given versions of files that changed.
func versionsBefore(given, changed filetree.Tree) filetree.Tree {
	before := filetree.Tree{}
	for name := range changed {
		if text := given[name]; text != nil {
			before[name] = text
		}
	}
	return before
}

// cachedFiles returns the output files that belong to a recorded answer. It is not ok if
// they cannot be read any more, or are more sensitive than bound.
func (p *priorRun) cachedFiles(e *record.AgentCall, bound label.Classification, now time.Time) (changed, before filetree.Tree, ok bool) {
	if p == nil || p.files[e.Session] == nil || p.files[e.Session].Missing != "" {
		return nil, nil, false
	}
	if p.strict {
		now = time.Time{} // as for the answer
	}
	reply, old, err := gate.Reissue(p.files[e.Session].Result, now)
	if err != nil || old.Classification() > bound {
		return nil, nil, false
	}
	changed, err = filetree.Parse(reply.Text)
	if err == nil {
		before, err = filetree.Parse(reply.JSON.Canonical())
	}
	return changed, before, err == nil
}

// filesEntry returns what a journal stores of the output files of a model call, with where the
// inputs are in the workspace.
func (x *modelCall) filesEntry(mounts []record.Mount) record.Entry {
	return record.Entry{Files: &record.AgentCall{
		CallID: record.CallID{Session: x.contract.Session, Task: x.task.ID, Title: x.task.Title, Agent: x.caps.Agent, Attempt: x.number, Part: "/files", Mounts: mounts},
		Start:  x.began, End: x.end, Result: gate.RecordOf(x.outputs), Shown: shownFiles(x.outputs, x.outputsText, x.outputsBefore),
	}}
}

// mountsOf returns where the folders among what was sealed are in the workspace. Files of a
// dependency are at the paths that they had in its workspace, so its folders count too, unless
// several dependencies had different ones.
func (f *folders) mountsOf(sealed []gate.Sealed) (mounts []record.Mount) {
	var inherited [][]record.Mount
	for i := range sealed {
		s := &sealed[i]
		switch tree, at := s.Files(); {
		case tree == nil:
		case s.Source().Kind == handoff.Input:
			mounts = append(mounts, record.Mount{Input: s.Source().Name, At: at})
		case s.Source().Kind == handoff.Files && len(tree) > 0:
			inherited = append(inherited, f.mounts[task.ID(s.Source().Name)])
		}
	}
	if inherited = slices.CompactFunc(inherited, slices.Equal); len(inherited) == 1 {
		for _, m := range inherited[0] {
			if !slices.Contains(mounts, m) {
				mounts = append(mounts, m)
			}
		}
	}
	return mounts
}

// shownFiles returns output files as the caller may see them: text, and what they were before. It
// returns nil if the caller may see all of them.
func shownFiles(outputs *envelope.Envelope, text, before string) *record.ShownResult {
	if gate.IsShownWhole(gate.RecordOf(outputs), text, before) {
		return nil
	}
	return &record.ShownResult{Text: text, Structured: before}
}

// outputFiles returns the texts of output files as the caller may see them, without those that
// were removed; nil if there are none, or if the caller may see none of them.
func outputFiles(outputs *envelope.Envelope, shown string) map[string]string {
	if outputs == nil {
		return nil
	}
	tree, err := filetree.Parse(shown)
	if err != nil {
		return nil
	}
	texts := make(map[string]string, len(tree))
	for name, text := range tree {
		if text != nil {
			texts[name] = *text
		}
	}
	return texts
}

// withFiles returns a key of a prompt that covers the files in the workspace too: the prompt
// has only their list.
func withFiles(key record.Key, sealed []gate.Sealed) record.Key {
	if !hasFiles(sealed) {
		return key
	}
	h := sha256.New()
	for i := range sealed {
		if tree, folder := sealed[i].Files(); tree != nil {
			text := tree.JSON()
			fmt.Fprintf(h, "%d:%s%d:%s", len(folder), folder, len(text), text)
		}
	}
	h.Write(key[:])
	return record.Key(h.Sum(nil))
}

// hasFiles reports whether there are files among what was sealed.
func hasFiles(sealed []gate.Sealed) bool {
	for i := range sealed {
		if tree, _ := sealed[i].Files(); tree != nil {
			return true
		}
	}
	return false
}

// filesAmong returns the IDs of what has files among what was sealed.
func filesAmong(sealed []gate.Sealed) (ids []envelope.ID) {
	for i := range sealed {
		if tree, _ := sealed[i].Files(); tree != nil {
			ids = append(ids, sealed[i].Decision().Envelope)
		}
	}
	return ids
}
