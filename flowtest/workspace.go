package flowtest

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/matcher"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A stand-in reads and writes its workspace as a model does: with the tools of its task, so that
// the gate decides on every call and result. It reads all files first, then writes one if the
// task has output files, and then answers. In place of a command, which has no tools, it works in
// the workspace that the engine gives to commands.

// shape matches every word that [word] makes. A search for it finds the canaries of a large
// folder in a short result, and does not tell the tool which words were planted.
var shape = regexp.MustCompile(`([bdfgklmnprstvz][aeiou]){11}`)

// Bounds on what a stand-in reads.
const (
	maxMatches = 10_000 // lines of a search
	maxReads   = 100    // files, if its task has file_read and not grep
)

// listed matches a line in a prompt's list of files.
var listed = regexp.MustCompile(`(?m)^(.+) \(\d+ bytes\)$`)

// toolCalls returns the calls that a stand-in makes before it answers, or none if it answers
// now. words are the canaries that it repeats.
func (t *testTeam) toolCalls(p prompt.Prompt, words []string) []llm.ToolCall {
	if !slices.ContainsFunc(p.Messages(), func(m prompt.Message) bool { return len(m.Calls) > 0 }) {
		if calls := t.readingCalls(p); len(calls) > 0 {
			return calls
		}
	}
	if calls := append(t.writingCall(p, words), t.otherCalls(p, words)...); len(calls) > 0 {
		return calls
	}
	return transferCall(p, words)
}

// readingCalls returns the calls that read the workspace of a task.
func (t *testTeam) readingCalls(p prompt.Prompt) (calls []llm.ToolCall) {
	switch {
	case offers(p, "grep"):
		pattern := shape.String()
		if slices.ContainsFunc(t.f.canaries, func(x *canary) bool { return !shape.MatchString(x.word) }) {
			pattern = "." // a text of the test, which can have any form
		}
		calls = append(calls, call("grep", map[string]any{"pattern": pattern, "maxResults": maxMatches}))
	case offers(p, "file_read"):
		for _, s := range p.Sections() {
			for _, file := range listed.FindAllStringSubmatch(s.Text, maxReads-len(calls)) {
				calls = append(calls, call("file_read", map[string]any{"path": file[1]}))
			}
		}
	}
	return calls
}

// writingCall returns the call that writes words into an output file of a task, unless it was
// made.
func (t *testTeam) writingCall(p prompt.Prompt, words []string) []llm.ToolCall {
	if !offers(p, "file_write") {
		return nil
	}
	for _, m := range p.Messages() {
		if slices.ContainsFunc(m.Calls, func(c prompt.Call) bool { return c.Name == "file_write" }) {
			return nil
		}
	}
	name, text := t.outputFile(p.Receipt().Task, words)
	if name == "" {
		return nil
	}
	return []llm.ToolCall{call("file_write", map[string]any{"path": name, "content": text})}
}

// outputFile returns an output file of a task that has the words in it. The name is empty if
// there is none.
func (t *testTeam) outputFile(id task.ID, words []string) (name, text string) {
	if t.flow == nil || t.flow.row(id) < 0 || len(words) == 0 {
		return "", ""
	}
	globs := t.flow.specs[t.flow.row(id)].OutputFiles
	if len(globs) == 0 {
		return "", ""
	}
	if name = nameFor(globs, id); name == "" {
		t.report("flowtest finds no name for a file that matches outputFiles %q; add a simpler glob", globs)
	}
	return name, strings.Join(words, "\n") + "\n"
}

// workspaceOf returns the workspace of an agent that is a command, and the texts in it. For any
// other agent it is nil.
func workspaceOf(ctx context.Context) (root *os.Root, texts string, err error) {
	open := supervise.Workspace(ctx)
	if open == nil {
		return nil, "", nil
	}
	if root, err = open(); err != nil {
		return nil, "", err
	}
	tree, _, err := filetree.Read(ctx, root.FS(), nil)
	for _, text := range tree {
		texts += "\n" + *text
	}
	return root, texts, err
}

// writeFile does for a command what writingCall does for a model.
func (t *testTeam) writeFile(root *os.Root, id task.ID, words []string) error {
	if root == nil {
		return nil
	}
	name, text := t.outputFile(id, words)
	if name == "" {
		return nil
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	return root.WriteFile(name, []byte(text), 0o644)
}

// offers reports whether an agent may call a tool.
func offers(p prompt.Prompt, name string) bool {
	return slices.ContainsFunc(p.Tools(), func(t prompt.Tool) bool { return t.Name == name })
}

// call returns a call of a tool.
func call(name string, arguments map[string]any) llm.ToolCall {
	raw, _ := json.Marshal(arguments) // texts and numbers
	return llm.ToolCall{Name: name, Arguments: string(raw)}
}

// choices matches the alternatives of a glob, and captures the first one.
var choices = regexp.MustCompile(`\{([^{},]*)[^{}]*\}|\[([^]!^])[^]]*\]`)

// nameFor returns a path that matches one of the globs, or "" if it finds none. Tasks with equal
// globs have different paths, if the globs allow that.
func nameFor(globs []string, id task.ID) string {
	parsed, err := filetree.ParseGlobs(globs)
	if err != nil {
		return "" // the plan reports it
	}
	b := matcher.NewBudget(context.Background(), filetree.MaxSteps)
	own := word(string(id))[:8]
	stars := strings.NewReplacer("**/", "", "**", own, "*", own, "?", "x")
	for _, g := range globs {
		name := stars.Replace(choices.ReplaceAllString(g, "$1$2"))
		if found, err := parsed.Match(b, name); found && err == nil {
			return name
		}
	}
	return ""
}
