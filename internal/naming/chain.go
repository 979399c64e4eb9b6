package naming

import (
	"slices"
	"strings"
)

// between stands between the names of a chain. Neither names of agents nor those of tools have it.
const between = " > "

// Chain returns the name of what several agents made together, one after the other: "triage > billing".
func Chain(first, rest string) string { return first + between + rest }

// Links returns the names of a chain, in their order. A name that is none is its only link.
func Links(name string) []string { return strings.Split(name, between) }

// IsChain reports whether a name is that of several agents.
func IsChain(name string) bool { return strings.Contains(name, between) }

// First returns the first name of a chain.
func First(name string) string {
	first, _, _ := strings.Cut(name, between)
	return first
}

// MapChain returns a chain with each of its names replaced.
func MapChain(name string, by func(string) string) string {
	links := Links(name)
	for i := range links {
		links[i] = by(links[i])
	}
	return strings.Join(links, between)
}

// Distinct returns the names of a chain, each once.
func Distinct(name string) (names []string) {
	for _, link := range Links(name) {
		if !slices.Contains(names, link) {
			names = append(names, link)
		}
	}
	return names
}
