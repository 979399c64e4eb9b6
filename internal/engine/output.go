package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/tool"
)

// maxTurnOutput bounds the results of one turn together, which are in memory at the same time.
const maxTurnOutput = 32 << 20

// fitResults shortens results that are longer than the agent gets. All of them together may
// take half of a prompt. If the agent can read its workspace, the whole results are there,
// without personal data.
func (t *turn) fitResults() error {
	results := t.call.sealed[1 : 1+len(t.limit)]
	sizes := make([]int, len(results))
	for i := range results {
		sizes[i] = min(results[i].Payload().Size(), cmp.Or(t.limit[i], tool.DefaultMaxOutput))
	}
	most := brief.CommonLength(slices.Clone(sizes), brief.Limit(t.call.limits.MaxPromptBytes)/2)
	t.unsaved = make([]bool, len(results))
	for i := range results {
		s, limit := &results[i], min(cmp.Or(t.limit[i], tool.DefaultMaxOutput), most)
		switch {
		case s.Withheld() || s.Payload().Size() <= limit:
			continue
		case t.of.readsFiles():
			saved, err := t.saveOutput(t.calls[i], s)
			if err != nil {
				return err
			}
			t.unsaved[i], *s = !saved, s.HeadAndTail(limit)
		default:
			*s = s.Lower(limit)
		}
		t.call.rulings[1+i] = s.Decision()
	}
	return nil
}

// saveOutput writes the result of a call into the workspace, without secrets and personal data,
// if there is room: the results there may take as much together as the files of the tools.
func (t *turn) saveOutput(call string, s *gate.Sealed) (saved bool, err error) {
	root, err := t.of.files()
	if err != nil {
		return false, err
	}
	text, p := s.Payload().Text(), s.Payload()
	if canonical, ok := p.JSON(); ok && text != "" {
		text += "\n" + canonical
	} else if ok {
		text = canonical
	}
	if text, _, err = t.call.by.Rules.Words().Text(text); err != nil {
		return false, fmt.Errorf("workspace: %w", err)
	}
	c := t.of.conversation
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.results+len(text) > c.place.limits.Bytes {
		return false, nil
	}
	c.results += len(text)
	if err := c.writeOwn(root, brief.OutputFile(call), []byte(text)); err != nil {
		return false, fmt.Errorf("workspace: %w", err)
	}
	return true, nil
}
