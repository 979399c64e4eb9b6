package openai

import (
	"context"
	"maps"
	"slices"

	"github.com/runteam/runteam/internal/toolschema"
	"github.com/runteam/runteam/llm"
)

// maxProbes bounds the requests of a search. One tool of 64 takes at most 14.
const maxProbes = 40

// A toolSearch finds the tools that an endpoint refuses in every form without naming them. It sends requests
// with some of the tools and without the conversation: those that are accepted are answered, so they must be
// short, and no answer may come from an agent that lacks tools which the endpoint takes.
type toolSearch struct {
	refused *request
	status  int // of the refusal
	probes  int
	bad     []int // the places of the refused tools
	usage   llm.Usage
}

// run searches, and reports whether the tools are the cause and some of them are accepted.
func (s *toolSearch) run(ctx context.Context) bool {
	var all []int
	for i := range s.refused.tools {
		if s.refused.tools[i].level < leftOut {
			all = append(all, i)
		}
	}
	if refuses, ok := s.probe(ctx, all); !ok || !refuses {
		return false
	}
	if refuses, ok := s.probe(ctx, nil); !ok || refuses {
		return false
	}
	_, ok := s.split(ctx, nil, all)
	return ok && len(s.bad) < len(all)
}

// split finds the refused tools among the suspects, at least one of which is refused, and returns the other
// tools after those that are known to be accepted.
func (s *toolSearch) split(ctx context.Context, accepted, suspects []int) (all []int, ok bool) {
	if len(suspects) == 1 {
		s.bad = append(s.bad, suspects[0])
		return accepted, true
	}
	first, second := suspects[:len(suspects)/2], suspects[len(suspects)/2:]
	refuses, ok := s.probe(ctx, slices.Concat(accepted, first))
	switch {
	case !ok:
		return nil, false
	case !refuses:
		return s.split(ctx, slices.Concat(accepted, first), second)
	}
	if accepted, ok = s.split(ctx, accepted, first); !ok {
		return nil, false
	}
	switch refuses, ok = s.probe(ctx, slices.Concat(accepted, second)); {
	case !ok:
		return nil, false
	case refuses:
		return s.split(ctx, accepted, second)
	}
	return slices.Concat(accepted, second), true
}

// probe reports whether the endpoint refuses some of the tools. ok is false if it does not say.
func (s *toolSearch) probe(ctx context.Context, places []int) (refuses, ok bool) {
	if s.probes++; s.probes > maxProbes {
		return false, false
	}
	r := &request{model: s.refused.model, changes: s.refused.changes, stream: s.refused.stream}
	r.Messages = []llm.Message{{Role: llm.User, Text: "Reply with the word OK."}}
	r.Settings = s.refused.Settings
	for _, i := range places {
		r.Tools = append(r.Tools, s.refused.Tools[i])
	}
	var emit func(llm.Delta) error
	if r.stream {
		emit = func(llm.Delta) error { return nil }
	}
	res, accepted, err := r.attempt(ctx, emit)
	s.usage = s.usage.Add(res.Usage)
	switch e := err.(type) {
	case *refusedError:
		s.usage = s.usage.Add(e.err.Usage)
		return true, e.err.Status == s.status
	case *llm.Error:
		s.usage = s.usage.Add(e.Usage)
	}
	return false, accepted
}

// leaveOut records that the tools at these places are not sent.
func (t *refusedTools) leaveOut(r *request, places []int) {
	levels := map[refusedTool]toolschema.Level{}
	maps.Copy(levels, t.levels)
	for _, i := range places {
		levels[refusedTool{r.tools[i].name, r.tools[i].schema}] = leftOut
	}
	t.levels = levels
}
