package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/trace"
)

// firstDifference builds the prompt of a task once more and says where it first
// differs from the one that was sent.
func (r *repetition) firstDifference(ctx context.Context, id task.ID) string {
	const another = "its prompt is another one"
	now := r.promptOf(ctx, id)
	was := r.sent(id)
	switch {
	case now == nil:
		return another
	case was == nil:
		return another + ", and the one that was sent is not in the journal"
	}
	if text := differ(r.run.trace, was, now); text != "" {
		return text
	}
	return another + ": its words are the same as far as they are shown, so it is something that is withheld, or who it was for: the agent, its model or its settings"
}

// sent returns the last prompt of a task that the journal has.
func (r *repetition) sent(id task.ID) *trace.Prompt {
	for i := range slices.Backward(r.run.trace.Prompts) {
		if p := &r.run.trace.Prompts[i]; p.Receipt.Task == id {
			return p
		}
	}
	return nil
}

// errSeen ends a run of which only one prompt was wanted.
var errSeen = errors.New("the prompt was seen")

// promptOf makes the run again as far as the prompt of a task, which is not sent.
func (r *repetition) promptOf(ctx context.Context, id task.ID) (found *prompt.Shown) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex // guards found
	o, past := r.o, r.run.history
	o.Replay = &team.Replay{Past: &past, Ask: true, Without: r.o.Replay.Without, WithoutInputs: r.o.Replay.WithoutInputs}
	o.Recorder = team.RecorderFunc(func(_ context.Context, rec event.Record) error {
		if rec.Prompt == nil || rec.Prompt.Receipt.Task != id {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		found = rec.Prompt
		cancel(errSeen)
		return errSeen
	})
	file := *r.file
	file.Tasks = slices.Clone(file.Tasks)
	for i := range file.Tasks {
		file.Tasks[i].MaxRetries = 0
	}
	once := &repetition{file: &file, team: r.team, o: o}
	_, _, _ = once.carry(ctx) // what it comes to is known
	mu.Lock()
	defer mu.Unlock()
	return found
}

// differ names the first part in which two prompts differ, and shows where; it
// is empty if what of them is shown is equal.
func differ(t *trace.Trace, was *trace.Prompt, now *prompt.Shown) string {
	x := &explained{trace: t}
	for _, text := range []struct {
		name   string
		before []prompt.Piece
		after  []prompt.Piece
	}{{"system prompt", was.System, now.System}, {"user message", was.Text, now.Text}} {
		for i := range max(len(text.before), len(text.after)) {
			var before, after prompt.Piece
			var name string
			if i < len(text.after) {
				after = text.after[i]
				name = x.source(now.Receipt, &after)
			}
			if i < len(text.before) {
				before = text.before[i]
				name = x.source(was.Receipt, &before)
			}
			if before.Words == after.Words && before.Withheld == after.Withheld && before.End-before.Start == after.End-after.Start {
				continue
			}
			at, old, anew := firstByte(before.Words, after.Words)
			return fmt.Sprintf("its %s differs from byte %d on, in %s: it was %s and is %s", text.name, int(before.Start)+at, name, old, anew)
		}
	}
	return ""
}

// source names what a piece of a prompt comes from, in short.
func (x *explained) source(r *prompt.Receipt, p *prompt.Piece) string {
	if p.Source < 0 {
		return "the words of runteam itself"
	}
	s := &r.Sources[p.Source]
	if s.Decision != nil {
		return x.what(s.Decision)
	}
	return partName(p.Part)
}

// firstByte returns from where on two texts differ, and some of both from there.
func firstByte(a, b string) (at int, was, is string) {
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	for at > 0 && at < len(a) && !utf8.RuneStart(a[at]) {
		at--
	}
	return at, some(a[at:]), some(b[min(at, len(b)):])
}

// some quotes the beginning of a text.
func some(text string) string {
	const most = 40
	if text == "" {
		return "nothing"
	}
	cut := strings.ToValidUTF8(text[:min(len(text), most)], "")
	if len(cut) < len(text) {
		cut += "…"
	}
	return strconv.Quote(cut)
}
