package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
)

// maxParts is how many parts of a prompt an error names.
const maxParts = 4

// A promptPart is what one source contributes to a prompt.
type promptPart struct {
	name  string
	bytes int // that the caller may see
}

// largestParts returns the end of an error message that names the largest parts of a
// prompt that was too long.
func largestParts(parts []promptPart) string {
	slices.SortStableFunc(parts, func(a, b promptPart) int { return cmp.Compare(b.bytes, a.bytes) })
	total := 0
	for _, p := range parts {
		total += p.bytes
	}
	var words []string
	for _, p := range parts[:min(len(parts), maxParts)] {
		if p.bytes == 0 || p.bytes < total/20 {
			break // shortening it would not help
		}
		words = append(words, p.name+" "+bytesize.Text(p.bytes))
	}
	if len(words) == 0 {
		return ""
	}
	return "; largest parts of the prompt: " + strings.Join(words, ", ")
}

// promptParts returns the parts of a prompt in order, with the sizes of its receipt. nameOf names a piece of context.
func promptParts(receipt *prompt.Receipt, nameOf func(gate.Source) string) (parts []promptPart) {
	for _, r := range slices.Concat(receipt.System, receipt.Text) {
		var source *prompt.Source
		if r.Source >= 0 && int(r.Source) < len(receipt.Sources) {
			source = &receipt.Sources[r.Source]
		}
		name := partNames[r.Part]
		if r.Part == brief.PartPayload && source != nil && source.Decision != nil {
			name = nameOf(source.Decision.Source)
		}
		if name == "" {
			continue
		}
		i := slices.IndexFunc(parts, func(p promptPart) bool { return p.name == name })
		if i < 0 {
			i, parts = len(parts), append(parts, promptPart{name: name})
		}
		parts[i].bytes += int(r.End - r.Start)
	}
	return parts
}

// partNames are the names of the parts of a prompt that are no context. Headings, fences and
// lines in place of context have no name.
var partNames = map[prompt.Part]string{
	brief.PartSystem: "system prompt", brief.PartSchema: "output schema", brief.PartDescription: "description", brief.PartGoal: "goal",
}

// contextName names a piece of context that is among the offers to a part of a session. It may
// contain task titles, since events have them too.
func contextName(s gate.Source, offers []gate.Offer, part string) string {
	title := s.Name
	for i := range offers {
		if o := &offers[i]; o.Source == s {
			title = cmp.Or(o.Title, title)
		}
	}
	switch s.Kind {
	case handoff.Dependency:
		return fmt.Sprintf("result of task %q", title)
	case handoff.Files, handoff.Folder:
		return fmt.Sprintf("files of %q", title)
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
		if strings.HasPrefix(part, record.TurnPrefix) {
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
