package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// whose names who made what is read.
func whose(r *team.Reading) string {
	if r.From == handoff.Anyone {
		return "everybody"
	}
	return cleanLine(r.From)
}

// kindOfReading names what is read.
func kindOfReading(r *team.Reading) string {
	switch {
	case r.Kind != handoff.Dependency:
		return r.Kind.String()
	case r.As == task.Structured:
		return "structured result"
	case r.As == task.Both:
		return "result and structured"
	}
	return "result"
}

// remarks says what becomes of what is read on its way, and by which rules.
func remarks(r *team.Reading) string {
	var all []string
	if r.Optional {
		all = append(all, "optional")
	}
	all = append(all, treatment(r)...)
	if rules := rulesOf(r); rules != "" {
		all = append(all, rules)
	}
	return strings.Join(all, "; ")
}

// treatment says what is delivered, lowered, withheld, revealed and retold.
func treatment(r *team.Reading) (all []string) {
	add := func(word, text string) {
		if text != "" {
			all = append(all, word+cleanLine(text))
		}
	}
	if r.Withheld == "" {
		add(cmp.Or(unless(!r.ByTask, "parts by task: "), "parts: "), r.Delivers)
	}
	add("withheld: ", string(r.Withheld))
	switch {
	case r.Withheld != "" || r.Arrives >= r.Label:
	case r.Lowered != "":
		add("declassified by ", r.Lowered+" to "+r.Arrives.String())
	case r.Arrives > label.Public:
		add("at most ", r.Arrives.String())
	}
	add("reveals ", kindsText(r.Reveals))
	add("retold: ", r.Retold)
	if r.CutTo > 0 {
		add("cut to ", label.SizeText(r.CutTo))
	}
	return all
}

func kindsText(kinds []redact.Kind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, ", ")
}

// rulesOf names every rule that has a say, and where each is written.
func rulesOf(r *team.Reading) string {
	cited := r.Rules
	if r.Rule != "" && !slices.ContainsFunc(cited, func(c gate.Citation) bool { return c.Rule == r.Rule }) {
		cited = append([]gate.Citation{{Rule: r.Rule, Line: r.Line}}, cited...)
	}
	names := make([]string, len(cited))
	for i, c := range cited {
		names[i] = cleanLine(string(c.Rule))
		if c.Line != "" {
			names[i] += " (" + cleanLine(c.Line) + ")"
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
