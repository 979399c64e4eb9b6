package plan

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// producerName names the producer of what is read.
func producerName(r *engine.Reading) string {
	if r.From == handoff.Anyone {
		return "all agents"
	}
	return terminal.CleanLine(r.From)
}

// kindOfReading names what is read.
func kindOfReading(r *engine.Reading) string {
	switch {
	case r.Kind != handoff.Dependency:
		return string(r.Kind)
	case r.As == task.Structured:
		return "structured result"
	case r.As == task.Both:
		return "result and structured"
	}
	return "result"
}

// previousRound marks what a task in a loop reads of the round before.
const previousRound = "previous round"

// readingNotes says how the gate changes what is read, and by which rules.
func readingNotes(r *engine.Reading) string {
	var all []string
	if r.Round != "" && r.Kind != handoff.Condition {
		all = append(all, previousRound)
	}
	if r.Optional {
		all = append(all, "optional")
	}
	for _, title := range r.Via {
		all = append(all, "via "+terminal.CleanLine(title))
	}
	all = append(all, deliveryNotes(r)...)
	if rules := ruleNames(r); rules != "" {
		all = append(all, rules)
	}
	return strings.Join(all, "; ")
}

// deliveryNotes says what is delivered, lowered, withheld, revealed and translated.
func deliveryNotes(r *engine.Reading) (all []string) {
	add := func(word, text string) {
		if text != "" {
			all = append(all, word+terminal.CleanLine(text))
		}
	}
	if r.Withheld == "" {
		word := "parts: "
		switch {
		case r.Kind == handoff.Condition:
			word = ""
		case r.ByTask:
			word = "parts by task: "
		}
		add(word, r.Delivers)
	}
	add("withheld: ", string(r.Withheld))
	switch {
	case r.Withheld != "" || r.Arrives >= r.Label:
	case r.Lowered != "":
		add("declassified by ", r.Lowered+" to "+r.Arrives.String())
	case r.Arrives > label.Public:
		add("at most ", r.Arrives.String())
	}
	add("reveals ", strings.Join(format.Kinds(r.Reveals), ", "))
	add("translated: ", r.Translated)
	if r.CutTo > 0 {
		add("cut to ", bytesize.Text(r.CutTo))
	}
	return all
}

// ruleNames names every rule that applies, and where each is written.
func ruleNames(r *engine.Reading) string {
	cited := r.Rules
	if r.Rule != "" && !slices.ContainsFunc(cited, func(c gate.Citation) bool { return c.Rule == r.Rule }) {
		cited = append([]gate.Citation{{Rule: r.Rule, Line: r.Line}}, cited...)
	}
	names := make([]string, len(cited))
	for i, c := range cited {
		names[i] = terminal.CleanLine(string(c.Rule))
		if c.Line != "" {
			names[i] += " (" + terminal.CleanLine(c.Line) + ")"
		}
		if c.Note != "" {
			names[i] += ": " + terminal.CleanLine(c.Note)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "rule " + names[0]
	}
	return "rules " + strings.Join(names, ", ")
}
