package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// maxParts is how many parts of a prompt an error names.
const maxParts = 4

// A promptPart is what one source contributes to a prompt.
type promptPart struct {
	name   string
	bytes  int  // as the caller may see them
	coarse bool // bytes is an upper bound, because a part is hidden from the caller
}

// largestParts returns the end of an error message that names the largest parts of a
// prompt that was too long. It is empty for any other error. Sizes are those of the
// receipt that the caller may see.
func (v callView) largestParts(err error) string {
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok || failed.Kind != callfault.PromptTooLong || v.receipt == nil {
		return ""
	}
	parts := v.promptParts()
	slices.SortStableFunc(parts, func(a, b promptPart) int { return cmp.Compare(b.bytes, a.bytes) })
	total := 0
	for _, p := range parts {
		total += p.bytes
	}
	var words []string
	for _, p := range parts[:min(len(parts), maxParts)] {
		if p.bytes < total/20 {
			break // shortening it would not help
		}
		size := bytesize.Text(p.bytes)
		if p.coarse {
			size = "up to " + size
		}
		words = append(words, p.name+" "+size)
	}
	if len(words) == 0 {
		return ""
	}
	return "; largest parts of the prompt: " + strings.Join(words, ", ")
}

// promptParts returns the parts of the prompt in order.
func (v callView) promptParts() (parts []promptPart) {
	for _, r := range slices.Concat(v.receipt.System, v.receipt.Text) {
		name, coarse := v.partName(&r)
		if name == "" {
			continue
		}
		i := slices.IndexFunc(parts, func(p promptPart) bool { return p.name == name })
		if i < 0 {
			i, parts = len(parts), append(parts, promptPart{name: name})
		}
		parts[i].bytes += int(r.End - r.Start)
		parts[i].coarse = parts[i].coarse || coarse
	}
	return parts
}

// partName names the part that a range of the prompt belongs to, and reports whether its
// size is a class. Headings, fences and lines in place of context have no name.
func (v callView) partName(r *prompt.Range) (name string, coarse bool) {
	var source *prompt.Source
	if r.Source >= 0 && int(r.Source) < len(v.receipt.Sources) {
		source = &v.receipt.Sources[r.Source]
		coarse = source.Classification > v.run.accepts
	}
	switch r.Part {
	case brief.PartSystem:
		return "system prompt", coarse
	case brief.PartSchema:
		return "output schema", coarse
	case brief.PartDescription:
		return "description", coarse
	case brief.PartGoal:
		return "goal", coarse
	case brief.PartPayload:
		if source == nil || source.Decision == nil {
			return "", false
		}
		return v.contextName(source.Decision.Source), source.Decision.Coarse
	}
	return "", false
}

// contextName names a piece of context. It may contain task titles, since events have
// them too.
func (v callView) contextName(s gate.Source) string {
	title := s.Name
	for i := range v.offers {
		if o := &v.offers[i]; o.Source == s {
			title = cmp.Or(o.Title, title)
		}
	}
	switch s.Kind {
	case handoff.Dependency:
		return fmt.Sprintf("result of task %q", title)
	case handoff.Files:
		return fmt.Sprintf("files of task %q", title)
	case handoff.Input:
		return fmt.Sprintf("input %q", title)
	case handoff.Memory:
		return "shared memory"
	case handoff.Message:
		return "messages"
	case handoff.Conversation:
		return "earlier turns"
	case handoff.Plan:
		return "description"
	case handoff.Draft:
		if strings.HasPrefix(v.part, record.TurnPrefix) {
			return "what the agent said before"
		}
		return "answer to correct"
	case handoff.ToolResult:
		return "results of tools"
	case handoff.Fault:
		return "errors"
	}
	return string(s.Kind)
}
