package prompt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

func check(b *brief.Brief) error {
	if b.Task == nil || b.Task.ID != b.Contract.Task {
		return fmt.Errorf("the contract is for another task: %w", gate.ErrUnsealed)
	}
	if b.Layout >= brief.Layouts {
		return fmt.Errorf("there is no %v", b.Layout)
	}
	if err := naming.CheckLine(b.Task.Title); err != nil {
		return fmt.Errorf("the task's title: %w", err)
	}
	if b.MaxBytes < 0 || b.MaxContext < 0 {
		return fmt.Errorf("MaxBytes is %d, and MaxContext %d", b.MaxBytes, b.MaxContext)
	}
	for _, f := range b.Tools {
		if !b.Contract.Discloses(f.Name) {
			return fmt.Errorf("tool %q: the contract does not disclose it", f.Name)
		}
	}
	for i, list := range listsOf(b) {
		for j := range *list {
			if err := checkSealed(&(*list)[j], &ofList[i], b); err != nil {
				return err
			}
		}
	}
	for i := range b.Conversation {
		if err := checkSealed(&b.Conversation[i], &ofConversation, b); err != nil {
			return err
		}
	}
	for i, s := range onesOf(b) {
		if s == nil {
			continue
		}
		if err := checkSealed(s, &ofOne[i], b); err != nil {
			return err
		}
	}
	return checkLayout(b)
}

// checkSealed lets through what was sealed for this prompt, belongs into this
// place, and has no structure in the words that the builder writes unfenced.
func checkSealed(s *gate.Sealed, in *place, b *brief.Brief) error {
	if err := fault(s, in, b); err != nil {
		return fmt.Errorf("%s %q: %w", s.Source().Kind, s.Source().Name, err)
	}
	return nil
}

// statuses are those that a task can have.
var statuses = []task.Status{task.Pending, task.Blocked, task.InProgress, task.Completed, task.Failed, task.Skipped, task.NotNeeded}

func fault(s *gate.Sealed, in *place, b *brief.Brief) error {
	if err := s.For(&b.Contract); err != nil {
		return err
	}
	if !slices.Contains(in.kinds[b.Layout], s.Source().Kind) {
		return fmt.Errorf("it has no place in %s of a brief for %v", in.name, b.Layout)
	}
	status := s.Status()
	if status != "" && !slices.Contains(statuses, status) {
		return fmt.Errorf("there is no status %q", status)
	}
	if in.status != "" && status != in.status {
		return fmt.Errorf("it stands in %s, and the status of its task is %q", in.name, status)
	}
	from := s.Decision().From
	if strings.ContainsRune(from, '"') { // it is written between quotes
		return fmt.Errorf("its producer's name has a quote: %w", naming.ErrName)
	}
	for _, words := range [...]string{s.Title(), s.Assignee(), s.Producer(), from} {
		if err := naming.CheckLine(words); err != nil {
			return fmt.Errorf("its heading: %w", err)
		}
	}
	return nil
}

// checkLayout checks what only one layout asks for.
func checkLayout(b *brief.Brief) error {
	switch {
	case b.Layout == brief.Work && b.Guidance != "":
		return errors.New("a brief for work has no Guidance: write it into System")
	case b.Layout != brief.Synthesis && (b.Part != 0 || b.Parts != 0):
		return fmt.Errorf("a brief for %v has no parts", b.Layout)
	}
	for i := 1; i < len(b.Drafts); i++ {
		if b.Drafts[i].Source().Kind != handoff.Fault && b.Drafts[i-1].Source().Kind == handoff.Fault {
			return errors.New("drafts: a plan comes after what is wrong with it; put it first")
		}
	}
	if err := checkInstructions(b); err != nil {
		return err
	}
	switch b.Layout {
	case brief.Planning:
		return checkPlanning(b)
	case brief.Synthesis:
		return checkSynthesis(b)
	}
	return nil
}

// checkInstructions checks what is written without a fence.
func checkInstructions(b *brief.Brief) error {
	if b.Instruction == nil {
		if err := checkWords("the description", b.Task.Description, b.Layout); err != nil {
			return err
		}
	} else if err := checkInstruction("the description", b.Instruction, b.Layout); err != nil {
		return err
	}
	if b.Goal != nil {
		if err := checkInstruction("the goal", b.Goal, b.Layout); err != nil {
			return err
		}
	}
	if b.Roster != nil {
		return checkRoster(b.Roster)
	}
	return nil
}

// checkInstruction checks context that is written without a fence as a description
// is checked.
func checkInstruction(what string, s *gate.Sealed, l brief.Layout) error {
	if s.Withheld() {
		return fmt.Errorf("%s is withheld: %w", what, s.Decision().Err())
	}
	if s.Payload().Text() == "" {
		return fmt.Errorf("%s has no text", what)
	}
	return checkWords(what, s.Payload().Text(), l)
}

func checkWords(what, text string, l brief.Layout) error {
	if line, opener := brief.Find(text, l.Reserved()); line > 0 {
		return fmt.Errorf("line %d of %s begins with %q, which only the builder may write", line, what, opener)
	}
	return nil
}

// uncut returns an error if the gate cut an instruction: half an instruction is a
// different one.
func uncut(b *brief.Brief) error {
	for _, s := range [...]*gate.Sealed{b.Goal, b.Instruction} {
		if s != nil && s.Decision().CutFrom > 0 {
			return fmt.Errorf("%w: the text of the %s has %d bytes, at most %d can be delivered; shorten it, or raise maxContextBytes", brief.ErrTooLarge, s.Source().Kind, s.Decision().CutFrom, s.Decision().BytesAfter)
		}
	}
	return nil
}

// checkRoster asks for what the system prompt shows of a roster.
func checkRoster(s *gate.Sealed) error {
	if s.Withheld() {
		return fmt.Errorf("the roster is withheld: %w", s.Decision().Err())
	}
	if _, ok := s.Payload().JSON(); !ok {
		return errors.New("the roster is no structured value")
	}
	return nil
}
