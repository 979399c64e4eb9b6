package main

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// maxFailures bounds how many different failures are explained one by one.
const maxFailures = 10

// summarize says on stderr what became of a run: counts, what the prompts
// held, and for each failure its cause and what to do next. It leaves out what
// the table of live progress ends in; after none, it says nothing but failures.
// It goes out in one piece, so that nothing lands between its lines.
func (a *app) summarize(res *team.Result, mode string) {
	if mode == "none" && res.Success() {
		return
	}
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	defer func() {
		if b.Len() > 0 {
			a.say("%s", b.String())
		}
	}()
	if mode != "live" {
		say("runteam: %s", totals(res))
	}
	if text := receipts(res); text != "" && mode != "none" {
		say("context: %s", text)
	}
	causes := causesOf(res)
	for i, c := range causes {
		if i == maxFailures {
			say("… and %d more kinds of failure; --output json has all", len(causes)-i)
			break
		}
		say("failed:  %s: %s", listed(c.who, 3), indented(c.message))
		if hint := next(c.code); hint != "" {
			say("         %s", hint)
		}
		if len(c.hit) > 0 {
			say("         not run because of it: %s", listed(c.hit, 3))
		}
	}
	switch res.Status {
	case team.StatusTimeout:
		say("runteam: %v: raise --timeout, or timeoutMs of the spec", res.Cause)
	case team.StatusError:
		if !res.Answered {
			say("runteam: could not run: every model call failed before a model answered")
		}
	}
}

// totals counts tasks, time and tokens.
func totals(res *team.Result) string {
	var c counts
	for i := range res.Tasks {
		root := task.ID("")
		if e := res.Tasks[i].Error; e != nil {
			root = e.Root
		}
		c.take(res.Tasks[i].Status, root)
	}
	return c.of(len(res.Tasks)) + " in " + elapsed(res.EndedAt.Sub(res.StartedAt)) + tokens(res.Usage.InputTokens, res.Usage.OutputTokens, "; ")
}

// receipts counts what reached the agents, by the receipts of all prompts.
func receipts(res *team.Result) string {
	delivered, withheld, redacted := 0, 0, 0
	prompts := 0
	for i := range res.Tasks {
		for _, r := range res.Tasks[i].Receipts {
			if r == nil {
				continue
			}
			prompts++
			for _, s := range r.Sources {
				if s.Decision == nil {
					continue
				}
				if s.Decision.Verdict == handoff.Passed {
					delivered++
				} else {
					withheld++
				}
				for _, n := range s.Decision.Redacted {
					redacted += n
				}
			}
		}
	}
	if prompts == 0 {
		return ""
	}
	return fmt.Sprintf("%s with %s delivered, %d withheld, %s redacted", plural(prompts, "prompt"), plural(delivered, "piece"), withheld, plural(redacted, "value"))
}

// A cause is one reason for which tasks failed by themselves.
type cause struct {
	code, message string
	who           []string // "task (agent)"
	hit           []string // titles of the tasks that failed or were skipped because of them
}

// causesOf groups the failures of a run by what they say, in the order of the spec.
func causesOf(res *team.Result) []*cause {
	var all []*cause
	byText := make(map[string]*cause)
	byRoot := make(map[task.ID]*cause)
	for i := range res.Tasks {
		t := &res.Tasks[i]
		if t.Error == nil || t.Error.Root != "" {
			continue
		}
		key := t.Error.Code + "\x00" + t.Error.Message
		c := byText[key]
		if c == nil {
			c = &cause{code: t.Error.Code, message: t.Error.Message}
			byText[key] = c
			all = append(all, c)
		}
		c.who = append(c.who, t.Title+" ("+t.Assignee+")")
		byRoot[t.ID] = c
	}
	for i := range res.Tasks {
		t := &res.Tasks[i]
		if t.Error != nil && byRoot[t.Error.Root] != nil {
			c := byRoot[t.Error.Root]
			c.hit = append(c.hit, t.Title)
		}
	}
	return all
}

// indented prints a message of several lines under its first.
func indented(message string) string {
	return strings.ReplaceAll(clean(strings.TrimRight(message, "\n")), "\n", "\n         ")
}

// nextSteps say what to do about a failure whose message does not say it itself.
var nextSteps = map[string]string{
	handoff.CodeHeld:        `see "runteam plan": it shows who reads what, at which label`,
	handoff.CodeTooLarge:    "let the task before answer in fewer words, or depend on it as output instead of structured",
	"PROMPT_TOO_LARGE":      "use fewer or shorter inputs and dependencies in this task",
	"OUTPUT_SCHEMA_INVALID": "loosen outputSchema, describe the form in the task, or use a stronger model",
	"TIMEOUT":               "raise timeoutMs of the task or the agent, or use a faster model",
	"MAX_TURNS":             "raise maxTurns of the agent",
	"TOOL_NOT_GRANTED":      "tell the model in its system prompt to answer in text: agents have no tools yet",
	"MODEL_RATE_LIMITED":    "wait and run again, or lower --max-concurrency",
	"MODEL_SERVER_ERROR":    "run again later, or set maxRetries of the task",
	"MODEL_CUT":             "run again, or set maxRetries of the task",
	"MODEL_EMPTY":           "run again, or set maxRetries of the task",
	"MODEL_NO_CREDIT":       "add credit to the account, or use another endpoint",
	"MODEL_TOO_LARGE":       "set maxTokens of the agent",
}

func next(code string) string { return nextSteps[code] }
