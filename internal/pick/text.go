package pick

import (
	"fmt"
	"strings"
)

// maxListed is how many paths of one list String writes.
const maxListed = 8

// String says for people what s selects, such as "/facts/*, /score except
// internal_notes". Long lists are cut and say so; [Selection.Paths] has all.
func (s Selection) String() string {
	r := s.get()
	var lists []string
	for _, list := range r.lists {
		if len(list) == 0 {
			return "nothing"
		}
		if !hasWhole(list) {
			lists = append(lists, listed(list))
		}
	}
	out := "everything"
	if len(lists) > 0 {
		out = strings.Join(lists, " and ")
	}
	if len(r.excepts) > 0 {
		out += " except " + listed(r.flat().blocks)
	}
	return out
}

func listed(patterns []pattern) string {
	var words []string
	for _, p := range patterns[:min(len(patterns), maxListed)] {
		words = append(words, string(p.text))
	}
	out := strings.Join(words, ", ")
	if more := len(patterns) - maxListed; more > 0 {
		out += fmt.Sprintf(" (%d more)", more)
	}
	return out
}
