// Package scripted serves an OpenAI-compatible endpoint that answers from a [Script], so that
// everything but the model can be used without a network. [Start] serves it on a loopback
// port, [New] returns it as an http.Handler. Answers are templates that quote the prompt, so
// an answer is wrong if context did not arrive. docs/reference/scripts.md describes the file.
package scripted

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Script contains answers. The zero value and nil answer every call with a minimal instance
// of its schema or with the names of its sections, marked OFFLINE, and a request for a plan
// with a small one for the agents of its roster.
type Script struct {
	Models  []string // the list of models; empty means "scripted"
	Replies []Reply  // the first that matches answers
}

// A Reply answers the calls that it matches: with a text, with calls of tools or with both,
// or with a status and a body. Its JSON is part of the version of the agents that it answers
// for; it must not change for a reply that has no new key.
type Reply struct {
	Task        string // the title in the prompt's first line, "# Task: <title>"; whitespace around it and case do not count; empty matches any
	Coordinator Step   // the step of a coordinator; empty matches any call
	Goal        string `json:",omitzero"` // a piece of the goal of a child, ignoring case; empty matches any call
	Part        int    // with Digest: the part of the results, counted from 1; zero matches any
	Turn        int    `json:",omitzero"` // the turn of the conversation, counted from 1; zero matches any. With ToolCalls, zero means the turn after that of the previous reply that calls tools under the same conditions
	System      string // a piece of the system prompt, ignoring case; empty matches any

	Text       string        // a template, see docs/reference/scripts.md
	ToolCalls  []ToolCall    `json:",omitempty"` // beside the text or instead of it
	Delay      time.Duration // before the first byte
	Status     int           // 200 to 599; zero means 200
	RetryAfter time.Duration // a Retry-After header in whole seconds, with a status from 400
	Body       string        // sent unchanged instead of a text
	Times      int           // how many calls this reply answers before the next match does; zero means all
	Cut        bool          // close the connection halfway through the answer
	Ended      string        `json:",omitzero"` // instead of an answer: how the call ended, such as "timeout"; see parseEnded
	Usage      *Usage        // nil means a fourth of the bytes, rounded up

	// Messages are members of the team of which the prompt must have a message, or a reply that a call
	// returned. Otherwise the call fails.
	Messages []string `json:",omitempty"`

	At Place // where it is written; zero for a reply that was made in Go
}

// A Place is a place in a script file. That of a reply is its task, goal or coordinator, or else its
// beginning. Line and Column count from 1.
type Place struct {
	File         string
	Line, Column int
}

// String returns "script.yaml:4:11", or the file alone without a line.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Usage is the number of tokens that a reply reports.
type Usage struct {
	Input  int
	Output int
}

// check returns a key of a reply that is invalid or contradicts the others, and a message; an
// empty message if there is none.
func (r Reply) check() (key, message string) {
	raw := r.Status != 0 || r.Body != ""
	if message := r.checkEnded(); message != "" {
		return "ended", message
	}
	switch {
	case r.Coordinator != "" && !slices.Contains(steps, r.Coordinator):
		return "coordinator", fmt.Sprintf("coordinator: want one of %s, not %q", listed(steps), r.Coordinator)
	case r.Coordinator != "" && r.Task != "":
		return "coordinator", "coordinator: a reply for the coordinator has no task; remove one of the two"
	case r.Goal != "" && (r.Task != "" || r.Coordinator != ""):
		return "goal", "goal: a reply for a child has neither task nor coordinator; remove one of them"
	case r.Goal != "" && strings.TrimSpace(r.Goal) == "":
		return "goal", "goal: it has no text; write task: " + ChildTitle + " for every child"
	case r.Part != 0 && r.Coordinator != Digest:
		return "part", "part: goes with coordinator: digest"
	case r.Status != 0 && (r.Status < 200 || r.Status > 599):
		return "status", "status: want a number from 200 to 599"
	case r.Text != "" && raw:
		return "text", "text: a reply with status or body has none; remove one of them"
	case len(r.ToolCalls) > 0 && raw:
		return "toolCalls", "toolCalls: a reply with status or body has none; remove one of them"
	case r.Cut && raw:
		return "cut", "cut: only a text can be cut"
	case r.Usage != nil && raw:
		return "usage", "usage: only a text has one"
	case r.RetryAfter != 0 && r.Status < 400:
		return "retryAfter", "retryAfter: goes with a status from 400"
	case r.Delay < 0 || r.RetryAfter < 0 || min(r.Times, r.Part, r.Turn) < 0:
		return "delay", "delay, retryAfter, times, part and turn are not below zero"
	case max(r.Times, r.Part, r.Turn) > maxWhole:
		return "times", fmt.Sprintf("times, part and turn are at most %d", maxWhole)
	case r.Usage != nil && (min(r.Usage.Input, r.Usage.Output) < 0 || max(r.Usage.Input, r.Usage.Output) > maxWhole):
		return "usage", fmt.Sprintf("usage: want numbers from 0 to %d", maxWhole)
	}
	if slices.Contains(r.Messages, "") {
		return "messages", "messages: a name is empty; write the names of agents"
	}
	for i := range r.ToolCalls {
		if message := r.ToolCalls[i].check(); message != "" {
			return "toolCalls", "toolCalls: " + message
		}
	}
	return "", ""
}

// maxWhole bounds the numbers in a script.
const maxWhole = 1<<31 - 1

// listed joins words for a message.
func listed[T ~string](words []T) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// compileAll checks a script and compiles its texts, in order.
func (s *Script) compileAll() ([]*answer, error) {
	var all []*answer
	replies := slices.Clone(s.Replies)
	numberTurns(replies)
	for i, r := range replies {
		if _, message := r.check(); message != "" {
			return nil, fmt.Errorf("script: reply %d: %s", i+1, message)
		}
		t, err := compile(r.Text)
		if err != nil {
			return nil, fmt.Errorf("script: reply %d: text: %w", i+1, err)
		}
		calls, err := compileCalls(r.ToolCalls)
		if err != nil {
			return nil, fmt.Errorf("script: reply %d: %w", i+1, err)
		}
		all = append(all, &answer{Reply: r, text: t, calls: calls, left: r.Times})
	}
	return all, nil
}
