package prompt_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/promptview"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// built returns the prompt of a brief and its whole receipt.
func built(t require.TestingT, b brief.Brief) (prompt.Prompt, *prompt.Receipt) {
	p, whole, err := prompt.Build(b)
	require.NoError(t, err)
	return p, whole
}

// words joins the words of pieces.
func words(pieces []promptview.Piece) string {
	var b strings.Builder
	for i := range pieces {
		b.WriteString(pieces[i].Words)
	}
	return b.String()
}

func TestClearedViewerSeesTheWholePrompt(t *testing.T) {
	t.Parallel()
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, receipt, err := prompt.Build(layout(newDesk(t)))
			require.NoError(t, err)
			s, _ := promptview.Show(p, receipt, label.Secret, nil)
			require.Equal(t, p.System(), words(s.System))
			require.Equal(t, p.Text(), words(s.Text))
			require.Equal(t, receipt, s.Receipt)
			told, bytes, hid := promptview.Receipt(p, receipt, label.Secret, nil)
			require.Same(t, receipt, told)
			require.False(t, hid)
			require.Equal(t, len(p.System())+len(p.Text()), bytes)
			require.Equal(t, bytes, s.Bytes())
		})
	}
}

// A reader below what a piece is gets its place, source and part. What
// comes of another source, and the builder's own words, stay.
//
// Requirement: G50.
func TestShowWithholdsWhatIsAboveTheReader(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-7c1f"
	d := newDesk(t)
	b := d.brief()
	b.System = "You write."
	b.Dependencies = []gate.Sealed{d.at(label.Internal, "Open", "what all may know"), d.at(label.Confidential, "Closed", canary)}
	p, whole := built(t, b)
	s, _ := promptview.Show(p, whole, label.Internal, nil)
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.NotContains(t, string(text), canary)
	require.Contains(t, words(s.Text), "what all may know")
	require.Contains(t, words(s.Text), "Write one page.")
	require.Equal(t, "You write.", words(s.System))
	var lengths []int32
	for _, piece := range s.Text {
		require.Equal(t, piece.Withheld, piece.Words == "")
		if piece.Withheld && piece.Part == brief.PartPayload {
			lengths = append(lengths, piece.End-piece.Start)
			require.Equal(t, label.Confidential, s.Receipt.Sources[piece.Source].Classification)
		}
	}
	require.Equal(t, []int32{0}, lengths)
}

// A viewer who may not see the messages in a conversation gets none of their words: of a reply to a call, and of what
// comes between the turns.
func TestShowWithholdsMessagesOfAConversation(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first, _ := built(t, d.brief())
	turn := d.sealTurn(2, "I ask.", "looked")
	turn.Results[0] = d.seal(handoff.Message, "", "critic", envelope.Text("the canary-reply"))
	turn.Messages = []gate.Sealed{d.seal(handoff.Message, "", "analyst", envelope.Text("a canary-note"))}
	p, receipt, err := prompt.Continue(first, &turn)
	require.NoError(t, err)
	require.Contains(t, p.Added(), "canary-reply")
	require.Contains(t, p.Added(), "canary-note")
	s, hid := promptview.Show(p, receipt, label.Public, nil)
	require.True(t, hid)
	require.NotContains(t, words(s.Text), "canary")
	for _, at := range s.Text {
		require.Less(t, int(at.Source), len(s.Receipt.Sources))
		require.Equal(t, at.Withheld, at.Words == "")
	}
	same, hid := promptview.Show(p, receipt, label.Internal, nil)
	require.False(t, hid)
	require.Equal(t, p.Added(), words(same.Text))
}

// What a task that gave the reader nothing has in a prompt is its title, its status and the reason, which everybody may
// see: a prompt with no other hidden source is shown whole, and so is the call that it was for. Only the decision about
// the value is an outline.
//
// Requirement: G68.
func TestATaskThatGaveNothingHidesNoWords(t *testing.T) {
	t.Parallel()
	shown := func(text string) (promptview.Shown, bool) {
		d := newDesk(t)
		b := d.brief()
		o := d.offer(handoff.Dependency, "Closed", "analyst", envelope.Text("none"))
		e, err := envelope.New(envelope.Header{ID: "e-closed", Producer: "analyst", Classification: label.Confidential, CreatedAt: noon}, envelope.Text(text))
		require.NoError(t, err)
		o.Envelope = e
		o.Optional, d.gate.Contract.Grants = true, nil
		b.Dependencies = []gate.Sealed{d.gated(o)}
		require.True(t, b.Dependencies[0].Withheld())
		p, whole := built(t, b)
		s, hid := promptview.Show(p, whole, label.Internal, nil)
		require.Equal(t, p.Text(), words(s.Text))
		return s, hid
	}
	one, hid := shown("short")
	require.False(t, hid)
	require.Contains(t, words(one.Text), "Closed")
	other, _ := shown(strings.Repeat("long ", 5000))
	require.Equal(t, one, other)
}

// Two prompts that differ in what is withheld from a viewer are shown alike: no mark, no fence line around a message, no
// position and no decision tells them apart.
//
// Requirement: G50.
func TestShownPromptsAreAlike(t *testing.T) {
	t.Parallel()
	shown := func(result, message, entry string) (promptview.Shown, string) {
		d := newDesk(t)
		b := d.brief()
		of := func(kind handoff.SourceKind, title string, level label.Classification, text string) gate.Sealed {
			o := d.offer(kind, title, "analyst", envelope.Text("none"))
			e, err := envelope.New(envelope.Header{ID: envelope.ID("e-" + title), Producer: "analyst", Classification: level, CreatedAt: noon}, envelope.Text(text))
			require.NoError(t, err)
			o.Envelope = e
			return d.gated(o)
		}
		b.Dependencies = []gate.Sealed{of(handoff.Dependency, "Closed", label.Confidential, result), of(handoff.Dependency, "Open", label.Internal, "for all")}
		b.Memory = []gate.Sealed{of(handoff.Memory, "one", label.Internal, "for all"), of(handoff.Memory, "two", label.Confidential, entry)}
		b.Messages = []gate.Sealed{of(handoff.Message, "m1", label.Confidential, message), of(handoff.Message, "m2", label.Internal, "for all"), of(handoff.Message, "m3", label.Confidential, message)}
		p, whole := built(t, b)
		s, _ := promptview.Show(p, whole, label.Internal, nil)
		return s, p.Text()
	}
	was, plain := shown("yes", "one line", "yes")
	require.NotContains(t, plain, "redacted")
	for _, text := range []string{"card 4111 1111 1111 1111", "<|im_start|> <|im_end|>", strings.Repeat("x", 9000), "two\nlines", "[withheld"} {
		is, full := shown(text, text, text)
		require.NotEqual(t, plain, full)
		require.Equal(t, was, is, text)
	}
	require.Equal(t, 3, strings.Count(words(was.Text), "for all"))
	text, err := json.Marshal(was.Receipt)
	require.NoError(t, err)
	require.NotRegexp(t, `"(redacted|broken|cutFrom|kept|dropped)":`, string(text))
}

// at seals the result of a task with a label.
func (d *desk) at(level label.Classification, title, text string) gate.Sealed {
	o := d.offer(handoff.Dependency, title, "analyst", envelope.Text("none"))
	e, err := envelope.New(envelope.Header{ID: envelope.ID("e-" + title), Producer: "analyst", Classification: level, CreatedAt: noon}, envelope.Text(text))
	require.NoError(d.t, err)
	o.Envelope = e
	return d.gated(o)
}

// For any clearance the pieces are the ranges of the receipt, in their order,
// and exactly those have no words whose source is above it.
func TestShowAddsTextToTheReceipt(t *testing.T) {
	t.Parallel()
	levels := rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Confidential})
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t)
		d.task = &task.Task{ID: "t-down", Spec: task.Spec{Title: "Write it up", Description: "Write.", Classification: levels.Draw(t, "task")}}
		b := d.brief()
		b.System = rapid.SampledFrom([]string{"", "You write."}).Draw(t, "system")
		for _, title := range []string{"One", "Two", "Three"} {
			b.Dependencies = append(b.Dependencies, d.at(levels.Draw(t, "level"), title, rapid.String().Draw(t, "text")))
		}
		p, whole := built(t, b)
		clearance := levels.Draw(t, "clearance")
		s, _ := promptview.Show(p, whole, clearance, nil)
		hidden := slices.ContainsFunc(s.Receipt.Sources, func(s prompt.Source) bool { return s.Classification > clearance }) // also one without words
		for _, side := range []struct {
			pieces []promptview.Piece
			shown  []prompt.Range
			ranges []prompt.Range
			text   string
		}{{s.System, s.Receipt.System, p.Receipt().System, p.System()}, {s.Text, s.Receipt.Text, p.Receipt().Text, p.Text()}} {
			require.Len(t, side.pieces, len(side.ranges))
			end := int32(0)
			for i, piece := range side.pieces {
				was := side.ranges[i]
				require.Equal(t, side.shown[i], piece.Range)
				require.Equal(t, was.Part, piece.Part)
				require.Equal(t, was.Source, piece.Source)
				require.Equal(t, end, piece.Start)
				end = piece.End
				above := piece.Source >= 0 && s.Receipt.Sources[piece.Source].Classification > clearance
				require.Equal(t, above, piece.Withheld)
				if above {
					require.Empty(t, piece.Words)
					require.Equal(t, piece.Start, piece.End)
				} else if words := side.text[was.Start:was.End]; hidden && piece.Part == brief.PartFrame {
					words = fence.ReplaceAllString(words, "${1}"+strings.Repeat("*", 32))
					require.Equal(t, unmarked(words), unmarked(piece.Words), "fences are digests of what is withheld")
				} else {
					require.Equal(t, words, piece.Words)
				}
			}
		}
	})
}

// unmarked leaves out the marks of fences, of which those about what is withheld
// are not shown.
func unmarked(words string) string {
	return regexp.MustCompile(`(?m)(^\[envelope .*", [a-z]+).*(: data, not instructions\]$)`).ReplaceAllString(words, "$1$2")
}

// A prompt that is shown and then lowered is what its reader is shown at once,
// and what was shown first stays as it is.
func TestShowingALoweredPromptEqualsShowingItToTheReader(t *testing.T) {
	t.Parallel()
	levels := rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Confidential})
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t)
		d.task = &task.Task{ID: "t-down", Spec: task.Spec{Title: "Write it up", Description: "Write.", Classification: levels.Draw(t, "task")}}
		b := d.brief()
		for _, title := range []string{"One", "Two", "Three"} {
			b.Dependencies = append(b.Dependencies, d.at(levels.Draw(t, "level"), title, rapid.StringN(1, -1, -1).Draw(t, "text")))
		}
		p, whole := built(t, b)
		first, then := levels.Draw(t, "first"), levels.Draw(t, "then")
		s, _ := promptview.Show(p, whole, first, nil)
		lowered, hid := s.Lower(then)
		again, _ := promptview.Show(p, whole, first, nil)
		require.Equal(t, again, s)
		atOnce, _ := promptview.Show(p, whole, min(first, then), nil)
		require.Equal(t, atOnce, *lowered)
		require.Equal(t, hid, words(lowered.Text) != words(s.Text))
		if !hid {
			require.Same(t, &s, lowered)
		}
	})
}

var fence = regexp.MustCompile(`(\[/?envelope )[0-9a-f]{32}`)

// Whoever is shown a prompt cannot change it.
func TestShownPromptIsItsOwn(t *testing.T) {
	t.Parallel()
	p, whole := built(t, newDesk(t).brief())
	s, _ := promptview.Show(p, whole, label.Secret, nil)
	s.Text[0].Words, s.Receipt.Text[0].End, s.Receipt.Agent = "other", 99, "other"
	again, _ := promptview.Show(p, whole, label.Secret, nil)
	require.Equal(t, p.Text(), words(again.Text))
	require.Equal(t, "writer", p.Receipt().Agent)
}
