package prompt_test

import (
	"fmt"
	"strings"
)

// sections says of each section whether it is an instruction, in which
// whatever is no section's heading is text. A task of the graph has others
// than a prompt for the coordinator.
var (
	workSections = map[string]bool{
		description: true, "## Inputs": false, "## Context from prerequisite tasks": false, "## Shared Team Memory": false, "## Messages from team members": false,
	}
	coordinatorSections = map[string]bool{
		description: true, "## Goal": true, "## Your previous plan": false, "## What is wrong with it": false,
		"## Original Goal": true, "## Task Results": false, "## Task Results (part 2 of 3)": false, "## Failed Tasks": false, "## Skipped Tasks": false, "## Shared Team Memory": false, "## Your Task": true,
	}
)

// description stands for what has no heading.
const description = "the description"

// A shape is what gives a prompt its structure, piece by piece.
type shape struct {
	pieces  []string
	known   map[string]bool // sections
	section string
	closing string // the line that ends the fence which is open
	silent  bool   // the fence stands for a text that could stand in a line
	number  int    // of fences
}

// structure reads a prompt without knowing how it was made, and returns what
// gives it its shape: sections, senders, fences with producer and label,
// withheld lines. What it cannot place it returns as a stray line. Fences are
// numbered, marks left out. A text in a line and the same text in a fence have
// one shape.
func structure(text string) []string {
	s := shape{known: coordinatorSections, section: description}
	if strings.HasPrefix(text, "# Task: ") {
		s.known = workSections
	}
	for _, line := range terminated(text) {
		s.read(strings.TrimPrefix(line, "\x00"))
	}
	if s.closing != "" {
		s.add("never closed")
	}
	return s.pieces
}

func (s *shape) add(piece string) { s.pieces = append(s.pieces, piece) }

func (s *shape) read(line string) {
	if s.closing != "" { // nothing but the closing line counts inside a fence
		if line == s.closing {
			s.closed()
		}
		return
	}
	_, section := s.known[line]
	switch found := fenceLine.FindStringSubmatch(line); {
	case strings.HasPrefix(line, "# Task: "):
		s.add(line)
	case section:
		s.section = line
		s.add(line)
	case s.known[s.section]:
		if found != nil || strings.HasPrefix(line, "[/envelope ") || strings.HasPrefix(line, "[withheld") {
			s.add("stray: " + line)
		}
	case found != nil:
		s.closing = "[/envelope " + found[1] + "]"
		s.opened(found[2], found[3])
	case strings.HasPrefix(line, "### ") || line == "#### Raw output" || line == "#### Validated structured result" || strings.HasPrefix(line, "[withheld: "):
		s.add(line)
	case s.section == "## Messages from team members" && strings.HasPrefix(line, "- **"):
		sender, rest, _ := strings.Cut(line[len("- **"):], "**:")
		s.add("message from " + sender)
		if rest != "" {
			s.opened(sender, "internal")
			s.closed()
		}
	case s.section == "## Failed Tasks" && strings.HasPrefix(line, "Error:"), s.section == "## Skipped Tasks" && strings.HasPrefix(line, "Reason:"):
		word, rest, _ := strings.Cut(line, ":")
		s.add(word)
		s.silent = rest == "" // a line does not say who speaks
	default:
		s.add("stray: " + line)
	}
}

func (s *shape) opened(from, level string) {
	if !s.silent {
		s.number++
		s.add(fmt.Sprintf("open %d from %s, %s", s.number, from, level))
	}
}

func (s *shape) closed() {
	if !s.silent {
		s.add(fmt.Sprintf("close %d", s.number))
	}
	s.closing, s.silent = "", false
}
