package plan

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// Defaults of a LoopDetection.
const (
	defaultRepetitions = 3
	defaultLoopWindow  = 4
)

// What happens when a loop is detected.
const (
	WarnOnLoop      = "warn"
	TerminateOnLoop = "terminate"
)

// A LoopDetection says when an agent counts as repeating itself; see team.LoopDetection.
type LoopDetection struct {
	MaxRepetitions int
	Window         int
	OnLoop         string
}

// WithDefaults returns the detection with every default filled in.
func (l LoopDetection) WithDefaults() LoopDetection {
	l.MaxRepetitions = cmp.Or(l.MaxRepetitions, defaultRepetitions)
	l.Window = cmp.Or(l.Window, max(defaultLoopWindow, l.MaxRepetitions))
	l.OnLoop = cmp.Or(l.OnLoop, WarnOnLoop)
	return l
}

// checkLoops reports a detection that could detect nothing.
func (s subject) checkLoops(l *LoopDetection) {
	if l == nil {
		return
	}
	of := s.at("loopDetection")
	switch d := l.WithDefaults(); {
	case l.MaxRepetitions < 0, l.Window < 0:
		of.report("a number is negative", "use a positive one, or leave it out for the default", task.ErrInvalid)
	case d.MaxRepetitions == 1:
		of.at("maxRepetitions").report("one repetition would end every task", "write 2 or more", task.ErrInvalid)
	case l.Window > 0 && l.Window < d.MaxRepetitions:
		of.at("loopDetectionWindow").report(fmt.Sprintf("the window of %d turns is shorter than the %d repetitions that it should contain", l.Window, d.MaxRepetitions),
			fmt.Sprintf("raise the window to at least %d, or lower the repetitions", d.MaxRepetitions), task.ErrInvalid)
	case d.OnLoop != WarnOnLoop && d.OnLoop != TerminateOnLoop:
		of.at("onLoopDetected").report(fmt.Sprintf("unknown action %q", l.OnLoop), "use warn or terminate", task.ErrInvalid)
	}
}

// A ToolCall is a call of a tool that is about to be made; see team.ToolCall.
type ToolCall struct {
	Run       string
	Task      task.ID
	Title     string
	Agent     string
	Tool      string
	Arguments json.RawMessage
	Effect    tool.Effect
}
