package redact

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// unique makes the edited keys of f differ from one another and from the clean keys.
func (w *walk) unique(f *frame) {
	taken := make(map[string]bool, len(w.keys)-f.keys)
	for _, key := range w.keys[f.keys:] {
		name, _ := jsontext.AppendUnquote(nil, w.in[key.from:key.to])
		taken[string(name)] = true
	}
	last := map[string]int{}
	for _, i := range w.renames[f.rename:] {
		e := &w.edits[i]
		base := e.text
		for n := max(last[base], 1); taken[e.text]; {
			n++
			e.text = base + " " + strconv.Itoa(n)
			last[base] = n
		}
		taken[e.text] = true
	}
}

// apply returns the value with the edits made.
func (w *walk) apply() string {
	if !w.sorted { // edits of joins came after those of the leaves
		slices.SortFunc(w.edits, func(a, b edit) int { return a.from - b.from })
	}
	out := make([]byte, 0, len(w.in)+16*len(w.edits))
	at := 0
	for _, e := range w.edits {
		out = append(out, w.in[at:e.from]...)
		out, _ = jsontext.AppendQuote(out, e.text) // fails on invalid UTF-8 only
		at = e.to
	}
	return string(append(out, w.in[at:]...))
}
