package naming

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Nearest returns the known word that a person most likely meant by word, for a
// hint such as `did you mean "Score"?`. See [NearestIn].
func Nearest(word string, known []string) (string, bool) {
	return NearestIn(word, slices.Values(known))
}

// NearestIn returns the known word that is nearest to word, ignoring letter case.
// A third of the letters may be wrong; a letter that is changed, missing, added or
// swapped with its neighbor is one mistake (Damerau-Levenshtein distance). Of
// several equally near words the first one wins.
func NearestIn(word string, known iter.Seq[string]) (string, bool) {
	n := nearest{word: []rune(strings.ToLower(word))}
	for candidate := range known {
		n.try(candidate)
	}
	return n.best, n.found
}

// suggested is how many known words a suggestion lists at most.
const suggested = 12

// Suggest returns a hint for a word that is none of the known: the one that was
// most likely meant (see [Nearest]), or else the first 12 of them.
func Suggest(word string, known []string) string {
	if near, ok := Nearest(word, known); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "none are defined"
	}
	return "write one of " + List(known)
}

// List returns the first 12 of some words.
func List(known []string) string {
	list := strings.Join(known[:min(len(known), suggested)], ", ")
	if len(known) > suggested {
		list += ", …"
	}
	return list
}

// JudgeMark separates the title of a task from the agent that judges its result, in the title of the
// task of the judge.
const JudgeMark = ": judge "

// ToolPrefix begins the name of a tool as a reader of arguments and a producer of results, such
// as tool:bash.
const ToolPrefix = "tool:"

// Alike returns what an unknown name would be, and the known names of that kind: tools for a name
// such as tool:bash, and kind and all names for others.
func Alike(kind, name string, known []string) (string, []string) {
	if !strings.HasPrefix(name, ToolPrefix) {
		return kind, known
	}
	return "tool", slices.DeleteFunc(slices.Clone(known), func(k string) bool { return !strings.HasPrefix(k, ToolPrefix) })
}

// nearest is a search for one word; its rows are reused from try to try.
type nearest struct {
	word     []rune
	best     string
	distance int
	found    bool
	rows     [3][]int
	runes    []rune
}

func (n *nearest) try(candidate string) {
	n.runes = n.runes[:0]
	for _, r := range strings.ToLower(candidate) {
		n.runes = append(n.runes, r)
	}
	limit := max(len(n.word), len(n.runes)) / 3
	if n.found {
		limit = min(limit, n.distance-1)
	}
	if gap := len(n.word) - len(n.runes); gap > limit || -gap > limit {
		return
	}
	if d := n.measure(limit); d <= limit {
		n.best, n.distance, n.found = candidate, d, true
	}
}

// measure returns the distance of word and runes, or something above limit
// as soon as it cannot be lower (optimal string alignment, three rows).
func (n *nearest) measure(limit int) int {
	a, b := n.word, n.runes
	for i := range n.rows {
		n.rows[i] = append(n.rows[i][:0], make([]int, len(b)+1)...)
	}
	before, last, row := n.rows[0], n.rows[1], n.rows[2]
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		lowest := row[0]
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
			lowest = min(lowest, row[j+1])
		}
		if lowest > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
