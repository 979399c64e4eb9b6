package assign

import (
	"fmt"
	"slices"
)

// The points of what a text shares with an agent; see [CapabilityMatch].
const (
	ownPoints        = 4 // a word of its name, capabilities or description
	promptPoints     = 1 // a word of its system prompt only
	capabilityPoints = 8
)

// A scorer measures how much a text shares with each agent.
type scorer struct {
	ids      map[string]int32 // the words of the agents, numbered from 0
	holders  [][]share        // by word, the agents that have it; nil if all have
	phrases  []phrase         // the different capabilities
	partOf   [][]int32        // by word, the phrases that contain it
	names    map[string]bool  // the words of names and capabilities
	phraseOf map[string]int32 // by the text of its words

	points  []int64 // by agent, of the text read last
	texts   int32   // read so far
	seen    []int32 // by word, the number of the last text that had it
	missing []int   // by phrase, its words that the text has not had yet
	touched []int32 // the phrases that it had some words of
}

// A share is what a word or a phrase is worth to an agent.
type share struct {
	agent  int32
	points int64
}

// A phrase is a capability: its words, and the agents that have it.
type phrase struct {
	words   []int32
	holders []share
}

func newScorer(agents []Agent) *scorer {
	s := &scorer{
		ids: make(map[string]int32), names: make(map[string]bool), phraseOf: make(map[string]int32), points: make([]int64, len(agents)),
	}
	for i := range agents {
		s.enterNames(&agents[i])
	}
	for i := range agents {
		s.enter(int32(i), &agents[i])
	}
	for id := range s.holders {
		s.holders[id] = weigh(s.holders[id], len(agents))
	}
	s.seen, s.partOf = make([]int32, len(s.holders)), make([][]int32, len(s.holders))
	s.missing = make([]int, len(s.phrases))
	for k := range s.phrases {
		p := &s.phrases[k]
		p.holders = weigh(p.holders, len(agents))
		s.missing[k] = len(p.words)
		for _, id := range p.words {
			s.partOf[id] = append(s.partOf[id], int32(k))
		}
	}
	return s
}

// enterNames adds the words that count however short they are.
func (s *scorer) enterNames(a *Agent) {
	for _, name := range append([]string{a.Name}, a.Capabilities...) {
		for word := range words(name) {
			s.names[string(word)] = true
		}
	}
}

// enter adds the texts of an agent.
func (s *scorer) enter(i int32, a *Agent) {
	s.enterText(i, a.Name, ownPoints)
	for _, name := range a.Capabilities {
		s.enterPhrase(i, s.enterText(i, name, ownPoints))
	}
	s.enterText(i, a.Description, ownPoints)
	s.enterText(i, a.SystemPrompt, promptPoints)
}

// enterText gives an agent the words of a text that it does not have yet, and
// returns all that count.
func (s *scorer) enterText(i int32, text string, points int64) (ids []int32) {
	for word, letters := range words(text) {
		if isEmpty(word, letters) || isWeak(word, letters) && !s.names[string(word)] {
			continue
		}
		id, known := s.ids[string(word)]
		if !known {
			id = int32(len(s.holders))
			s.ids[string(word)], s.holders = id, append(s.holders, nil)
		}
		s.holders[id] = give(s.holders[id], share{i, points})
		ids = append(ids, id)
	}
	return ids
}

// enterPhrase gives an agent a capability, unless no word of it counts.
func (s *scorer) enterPhrase(i int32, words []int32) {
	if len(words) == 0 {
		return
	}
	slices.Sort(words)
	words = slices.Compact(words)
	k, known := s.phraseOf[fmt.Sprint(words)]
	if !known {
		k = int32(len(s.phrases))
		s.phraseOf[fmt.Sprint(words)] = k
		s.phrases = append(s.phrases, phrase{words: words})
	}
	s.phrases[k].holders = give(s.phrases[k].holders, share{i, capabilityPoints})
}

// give adds a share, unless the last one is of the same agent.
func give(holders []share, one share) []share {
	if n := len(holders); n > 0 && holders[n-1].agent == one.agent {
		return holders
	}
	return append(holders, one)
}

// weigh multiplies what a word or phrase is worth by the number of agents that
// do not have it.
func weigh(holders []share, agents int) []share {
	if len(holders) == agents {
		return nil
	}
	for k := range holders {
		holders[k].points *= int64(agents - len(holders))
	}
	return holders
}

// read counts the points of every agent for a text, given in pieces.
func (s *scorer) read(pieces ...string) {
	clear(s.points)
	for _, k := range s.touched {
		s.missing[k] = len(s.phrases[k].words)
	}
	s.touched = s.touched[:0]
	s.texts++
	for _, piece := range pieces {
		for word, letters := range words(piece) {
			id, known := s.ids[string(word)]
			if known && s.seen[id] != s.texts && functionWords[string(word)]>>letters&1 == 0 {
				s.seen[id] = s.texts
				s.count(id)
			}
		}
	}
}

// count adds the points of a word, and of the phrases that it completes.
func (s *scorer) count(id int32) {
	s.add(s.holders[id])
	for _, k := range s.partOf[id] {
		s.touched = append(s.touched, k)
		if s.missing[k]--; s.missing[k] == 0 {
			s.add(s.phrases[k].holders)
		}
	}
}

func (s *scorer) add(shares []share) {
	for _, one := range shares {
		s.points[one.agent] += one.points
	}
}
