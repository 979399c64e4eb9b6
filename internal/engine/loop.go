package engine

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
)

// A loopDetector detects that an agent repeats itself. It looks only at what the agent said, so
// a resumed conversation has the same warning and the same end.
type loopDetector struct {
	calls, texts []record.Key // digests of the last turns, at most as many as the window has
	warned       bool         // the agent got its warning
}

// add adds a turn, and returns what is repeated in the window, or "".
func (l *loopDetector) add(text string, calls []llm.ToolCall, limit *plan.LoopDetection) string {
	called := make([]string, len(calls))
	for i := range calls { // the arguments are canonical
		key := argumentsKey(&calls[i])
		called[i] = string(key[:])
	}
	slices.Sort(called)
	l.calls = lastOf(append(l.calls, sha256.Sum256([]byte(strings.Join(called, "")))), limit.Window)
	var said record.Key
	if text = strings.TrimSpace(text); text != "" {
		said = sha256.Sum256([]byte(text))
	}
	l.texts = lastOf(append(l.texts, said), limit.Window)
	switch {
	case timesLast(l.calls) >= limit.MaxRepetitions:
		return "makes the same calls of tools"
	case said != (record.Key{}) && timesLast(l.texts) >= limit.MaxRepetitions:
		return "writes the same text"
	}
	return ""
}

// lastOf returns the last n entries.
func lastOf(list []record.Key, n int) []record.Key { return list[max(len(list)-n, 0):] }

// timesLast returns how often the last entry is in the list.
func timesLast(list []record.Key) (n int) {
	for _, d := range list {
		if d == list[len(list)-1] {
			n++
		}
	}
	return n
}

// detectLoop adds the calls of a turn to those that are compared. It returns the warning that the
// agent gets, if any, or the error that ends the task.
func (t *turn) detectLoop(current *modelCall) (warning string, err error) {
	a := t.of
	limit := a.run.team.Config.Agents[a.member].LoopDetection
	if limit == nil {
		return "", nil
	}
	of := limit.WithDefaults()
	what := a.loops.add(current.reply.Text, current.reply.ToolCalls, &of)
	if what == "" {
		return "", nil
	}
	what = fmt.Sprintf("%s %d times within %d turns", what, of.MaxRepetitions, of.Window)
	if of.OnLoop == plan.TerminateOnLoop || a.loops.warned {
		return "", fmt.Errorf("%w: it %s", codes.Condition(codes.Loop), what)
	}
	a.loops.warned = true
	if bus := a.run.bus; bus.live() {
		ev := a.eventOf(event.Warning)
		ev.Code, ev.Message = codes.Loop, fmt.Sprintf("agent %q %s; it was warned", a.caps.Agent, what)
		bus.emit(ev)
	}
	return fmt.Sprintf("You have repeated the same calls or words %d times. Do something else, or answer with what you know. If you repeat them again, the task ends.", of.MaxRepetitions), nil
}
