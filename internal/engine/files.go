package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/matcher"
	"github.com/runteam/runteam/internal/memo"
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

// changedFiles returns the files of a workspace that match globs and were written, also again with the same text, or
// removed. It reads no others.
func changedFiles(ctx context.Context, f *workspace.Folder, globs []string, given filetree.Tree) (filetree.Tree, error) {
	outputs, err := filetree.ParseGlobs(globs)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutputFiles, err)
	}
	b := matcher.NewBudget(ctx, filetree.MaxSteps)
	exists := map[string]bool{}
	isChanged := func(name string, info fs.FileInfo) (bool, error) {
		if is, err := outputs.Match(b, name); !is || err != nil {
			return false, err
		}
		exists[name] = true
		return f.IsWritten(name, info, given[name]), nil
	}
	own := []string{brief.HistoryDir + "/**", brief.OutputFile(record.CallPrefix + "*")}
	changed, skipped, err := filetree.ReadSome(ctx, workspace.FS(f.Root), own, maxOutputFiles, isChanged)
	if large, ok := errors.AsType[*filetree.TooLargeError](err); ok {
		return nil, fmt.Errorf("%w: %w, of those that match its outputFiles and that it changed; narrow outputFiles, or change less", ErrOutputFiles, large)
	}
	isOutput := func(name string) (is bool) {
		if err == nil {
			is, err = outputs.Match(b, name)
		}
		return is
	}
	for _, name := range skipped {
		if isOutput(name) {
			return nil, fmt.Errorf("%w: %s is not a UTF-8 text, but a link or something else; narrow outputFiles, or remove it", ErrOutputFiles, name)
		}
	}
	for name := range given {
		if !exists[name] && isOutput(name) && !hasReplaced(changed, name) {
			changed[name] = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutputFiles, err)
	}
	return changed, nil
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
// were before, which only the caller reads. given are the IDs of what the files in the workspace were from, so that a
// journal tells which versions its task was given.
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
func takeOutputs(ctx context.Context, o purpose, result *envelope.Envelope) error {
	a, ok := o.(*attempt)
	if !ok || a.conversation == nil {
		return nil
	}
	if !a.hasFiles.Load() {
		if len(a.task.OutputFiles) > 0 && !a.isChild() {
			warnNoOutputs(a)
		}
		return nil
	}
	if err := checkCommandFiles(a); err != nil || len(a.task.OutputFiles) == 0 {
		return err
	}
	if _, err := a.files(); err != nil {
		return err
	}
	folder, _ := a.current()
	given := a.given.files()
	tree, err := changedFiles(ctx, folder, a.task.OutputFiles, given)
	switch {
	case err != nil && ctx.Err() != nil:
		return withCause(ctx, ctx.Err())
	case err != nil:
		return err
	}
	if len(tree) == 0 && !a.isChild() {
		warnNoOutputs(a)
	}
	a.outputs, err = outputsOf(result, tree, versionsBefore(given, tree), filesAmong(a.sealed))
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

// cachedFiles returns the output files that are recorded of a session. It is not ok if they
// cannot be read any more, or are more sensitive than bound.
func cachedFiles(m *memo.Memo, session string, bound label.Classification, now time.Time) (changed, before filetree.Tree, ok bool) {
	of := m.Call(session).Files
	if of == nil || of.Missing != "" {
		return nil, nil, false
	}
	if m.Is(memo.Strict) {
		now = time.Time{} // as for the answer
	}
	reply, old, err := gate.Reissue(of.Result, now)
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
			inherited = append(inherited, f.left[task.ID(s.Source().Name)].mounts)
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
func withFiles(key record.Key, sealed []gate.Sealed, contents *gate.FolderCache) record.Key {
	if !hasFiles(sealed) {
		return key
	}
	var of []byte
	for i := range sealed {
		tree, folder := sealed[i].Files()
		if tree == nil {
			continue
		}
		of = appendFiles(of, folder, tree, contents)
	}
	return sha256.Sum256(append(of, key[:]...))
}

// appendFiles appends the names of files and the digests of their texts.
func appendFiles(of []byte, folder string, tree filetree.Tree, contents *gate.FolderCache) []byte {
	of = strconv.AppendInt(strconv.AppendQuote(of, folder), int64(len(tree)), 10)
	for _, name := range tree.Paths() {
		if of = strconv.AppendQuote(of, name); tree[name] != nil {
			sum := contents.Sum(tree[name])
			of = append(of, sum[:]...)
		}
	}
	return of
}

// withMerged returns a key of a prompt that covers which of several versions of a file counts.
func withMerged(key record.Key, merged filetree.Tree, contents *gate.FolderCache) record.Key {
	if len(merged) == 0 {
		return key
	}
	return sha256.Sum256(append(appendFiles(nil, ".", merged, contents), key[:]...))
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
