package gate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
)

// Names in prompts under a policy that hides identities. Decisions and receipts keep the real names.
const (
	numbered = "agent "       // and the number of the agent in the roster, from 1
	former   = "former agent" // one that is not in the roster, such as that of an entry of the memory
)

// An identity replaces the names of agents in prompts. Nil replaces nothing.
type identity struct {
	aliases map[string]string
	names   []string // longest first, so that no name is replaced by that of another one which it begins with
}

// newIdentity returns the replacement of the names of parties, in their order. Tools keep their names.
func newIdentity(parties []Party) *identity {
	i := &identity{aliases: map[string]string{}}
	for _, p := range parties {
		if !isTool(p.Name) {
			i.aliases[p.Name] = numbered + strconv.Itoa(len(i.aliases)+1)
		}
	}
	i.names = slices.SortedFunc(maps.Keys(i.aliases), func(a, b string) int { return len(b) - len(a) })
	return i
}

// shown returns what prompts have in place of a name. The caller, the coordinator, tools and the
// runtime are roles, and keep theirs.
func (i *identity) shown(name string) string {
	if i == nil || name == "" {
		return name
	}
	if naming.IsChain(name) {
		return naming.MapChain(name, i.shown)
	}
	if alias, ok := i.aliases[name]; ok {
		return alias
	}
	switch name {
	case handoff.User, handoff.Coordinator, handoff.Computed, Runtime:
		return name
	}
	if isTool(name) {
		return name
	}
	return former
}

// Numbered returns the name that hidden identities have for agent i of a roster.
func Numbered(i int) string { return numbered + strconv.Itoa(i+1) }

// words returns a text of the runtime with all names replaced that are whole words.
func (i *identity) words(text string) string {
	if i == nil {
		return text
	}
	var b strings.Builder
	before := utf8.RuneError
	for rest := text; rest != ""; {
		if name := i.nameAt(rest, before); name != "" {
			b.WriteString(i.aliases[name])
			rest = rest[len(name):]
			before = 'x' // a name ends with a letter or a digit, or with what belongs to it
			continue
		}
		r, size := utf8.DecodeRuneInString(rest)
		b.WriteString(rest[:size])
		rest, before = rest[size:], r
	}
	return b.String()
}

// nameAt returns the name with which a text begins, as a whole word; empty if it begins with none.
func (i *identity) nameAt(text string, before rune) string {
	if isWord(before) {
		return ""
	}
	for _, name := range i.names {
		if strings.HasPrefix(text, name) {
			if next, size := utf8.DecodeRuneInString(text[len(name):]); size == 0 || !isWord(next) {
				return name
			}
		}
	}
	return ""
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r))
}

// ShownName returns what prompts have in place of the name of a producer: the name, or a number if the
// policy hides identities.
func (b *Rulebook) ShownName(name string) string {
	if b == nil {
		return name
	}
	return b.identity.shown(name)
}

// JudgeTitle returns the title of the task of a judge as prompts have it.
func (b *Rulebook) JudgeTitle(title, judge string) string {
	at := strings.LastIndex(title, naming.JudgeMark+judge)
	if at < 0 || judge == "" || !b.HidesIdentity() {
		return title
	}
	at += len(naming.JudgeMark)
	return title[:at] + b.ShownName(judge) + title[at+len(judge):]
}

// WithoutNames returns a text of the runtime for a prompt: without the names of agents, if the policy
// hides identities.
func (b *Rulebook) WithoutNames(text string) string {
	if b == nil {
		return text
	}
	return b.identity.words(text)
}

// HidesIdentity reports whether prompts have numbers in place of the names of agents.
func (b *Rulebook) HidesIdentity() bool { return b != nil && b.identity != nil }

// checkIdentity reports agents whose names read like what hideIdentity writes in place of names.
func (c *policyChecker) checkIdentity() {
	if !c.book.policy.HideIdentity {
		return
	}
	for _, p := range c.parties {
		name := naming.Normalize(p.Name)
		_, err := strconv.Atoi(strings.TrimPrefix(name, numbered))
		if name == strings.TrimSpace(numbered) || name == former || strings.HasPrefix(name, numbered) && err == nil {
			c.at(fmt.Sprintf("agent %q", p.Name)).add("its name reads like the numbers that prompts have in place of names", "rename the agent, or leave hideIdentity out", "hideIdentity")
		}
	}
	c.book.identity = newIdentity(c.parties)
}
