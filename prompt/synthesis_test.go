package prompt_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSectionsOfASynthesis(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.synthesis("Find out why.")
	b.Dependencies = []gate.Sealed{
		d.dep("Analyse", "analyst", "Costs rose."), d.dep("Say nothing", "mute", ""), d.digest("Part 1", "Sales fell."),
		d.seal(handoff.Dependency, "Score", "analyst", structured(t, `{"score": 3}`), task.Structured),
	}
	b.Failed = []gate.Sealed{d.ended(task.Failed, "Ask", "analyst", "500"), d.refused(d.end(task.Failed, "Ask again", "analyst", "x"))}
	b.Skipped = []gate.Sealed{d.ended(task.Skipped, "Write", gate.Runtime, "")}
	b.Memory = []gate.Sealed{d.memory("critic", "note", "short"), d.memory("critic", "empty", "")}
	p := build(t, b)
	require.Equal(t, []prompt.Section{
		{Kind: handoff.Goal, Title: "Goal", From: "user", Text: "Find out why."},
		{Kind: handoff.Dependency, Title: "Analyse", From: "analyst", Text: "Costs rose."},
		{Kind: handoff.Dependency, Title: "Say nothing", From: "mute"},
		{Kind: handoff.Digest, Title: "Part 1", From: "coordinator", Text: "Sales fell."},
		{Kind: handoff.Dependency, Title: "Score", From: "analyst", JSON: `{"score":3}`},
		{Kind: handoff.Fault, Title: "Ask", From: "analyst", Text: "500"},
		{Kind: handoff.Fault, Title: "Ask again", From: "analyst", Withheld: gate.ReasonRule},
		{Kind: handoff.Fault, Title: "Write", From: "runteam"},
		{Kind: handoff.Memory, Title: "note", From: "critic", Text: "short"},
	}, p.Sections())
	canonical, ok := p.Structured("score")
	require.True(t, ok)
	require.Equal(t, `{"score":3}`, canonical)
	require.Len(t, withheldIn(p.Receipt()), 1)
}

func TestTasksAreListedByStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []task.Status{task.Pending, task.Blocked, task.InProgress, task.Completed, task.Failed, task.Skipped, ""} {
		d := newDesk(t)
		lists := map[task.Status]func(*brief.Brief){
			task.Completed: func(b *brief.Brief) { b.Dependencies = []gate.Sealed{d.gated(d.offerOf(status, "x", "analyst"))} },
			task.Failed:    func(b *brief.Brief) { b.Failed = []gate.Sealed{d.ended(status, "x", "analyst", "y")} },
			task.Skipped:   func(b *brief.Brief) { b.Skipped = []gate.Sealed{d.ended(status, "x", "analyst", "y")} },
		}
		for want, fill := range lists {
			b := d.synthesis("Find out why.")
			fill(&b)
			_, _, err := prompt.Build(b)
			require.Equal(t, status == want, err == nil, "%q among the %v: %v", status, want, err)
		}
	}
}

func TestErrorsOfTasksAreTexts(t *testing.T) {
	t.Parallel()
	for _, as := range []task.Payload{task.Structured, task.Both} {
		for _, status := range []task.Status{task.Failed, task.Skipped} {
			d := newDesk(t)
			b := d.synthesis("Find out why.")
			o := d.offer(handoff.Fault, "Ask", "analyst", structured(t, `{"a":1}`).WithText("x"))
			o.Status, o.As = status, as
			if s := d.gated(o); status == task.Failed {
				b.Failed = []gate.Sealed{s}
			} else {
				b.Skipped = []gate.Sealed{s}
			}
			_, _, err := prompt.Build(b)
			require.ErrorIs(t, err, brief.ErrInvalid)
		}
	}
}

func TestShortErrorsAreInline(t *testing.T) {
	t.Parallel()
	for text, inline := range map[string]bool{
		"the endpoint answered 500": true, "with **stars**: and [brackets]": true, "see [/envelope x]": true, "Error: twice": true, "### heading": true,
		"two\nlines": false, "cr\r": false, "ls\u2028": false, "\x1b[2J": false, "zero\u200bwidth": false, "odd \ufffd": false,
		"## Inputs": false, "## Your Task": false, " ## failed tasks": false, "[envelope x": false, "<|im_start|>": false, fakeToken: false,
	} {
		for word, status := range map[string]task.Status{"\n### Ask (FAILED)\nError:": task.Failed, "\n### Ask (SKIPPED)\nReason:": task.Skipped} {
			d := newDesk(t)
			b := d.synthesis("Find out why.")
			if s := d.ended(status, "Ask", "analyst", text); status == task.Failed {
				b.Failed = []gate.Sealed{s}
			} else {
				b.Skipped = []gate.Sealed{s}
			}
			got := build(t, b).Text()
			if inline {
				require.Contains(t, got, word+" "+text+"\n\n## Your Task")
			} else {
				require.Contains(t, got, word+"\n[envelope ", "%q", text)
			}
		}
	}
}

func TestReceiptsAccountForEveryByteOfASynthesis(t *testing.T) {
	t.Parallel()
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "x", "## Your Task\n", fakeToken, "<|im_start|>", strings.Repeat("é", 12_000)}))
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t)
		b := d.synthesis("Find out why.")
		b.Roster = new(d.roster(`["analyst"]`))
		want := map[envelope.ID]string{}
		add := func(list *[]gate.Sealed, s gate.Sealed) {
			if text := s.Payload().Text(); text != "" {
				want[s.Decision().Envelope] = text
			}
			*list = append(*list, s)
		}
		for range rapid.IntRange(0, 3).Draw(t, "results") {
			add(&b.Dependencies, d.dep("Analyse", "analyst", texts.Draw(t, "result")))
		}
		for range rapid.IntRange(0, 2).Draw(t, "digests") {
			add(&b.Dependencies, d.digest("Part", texts.Draw(t, "digest")))
		}
		for range rapid.IntRange(0, 2).Draw(t, "failed") {
			add(&b.Failed, d.ended(task.Failed, "Ask", "analyst", texts.Draw(t, "error")))
		}
		for range rapid.IntRange(0, 2).Draw(t, "skipped") {
			add(&b.Skipped, d.ended(task.Skipped, "Write", "runteam", texts.Draw(t, "reason")))
		}
		p := build(t, b)
		r := p.Receipt()
		requireTiled(t, r, r.System, p.System())
		requireTiled(t, r, r.Text, p.Text())
		got := map[envelope.ID]string{}
		for _, one := range r.Text {
			switch piece := p.Text()[one.Start:one.End]; one.Part {
			case brief.PartPayload:
				got[r.Sources[one.Source].Decision.Envelope] += piece
			case brief.PartGoal:
				require.Equal(t, "Find out why.", piece)
			case brief.PartDescription:
				require.Equal(t, b.Task.Description, piece)
			}
		}
		require.Equal(t, want, got)
		headings := strings.Count(strings.Join(structure(p.Text()), "\n"), "\n### ")
		require.Equal(t, len(b.Dependencies)+len(b.Failed)+len(b.Skipped), headings, "no task is left out")
	})
}

func TestCallerSetsTheLimit(t *testing.T) {
	t.Parallel()
	for layout := range brief.Layout(3) {
		d := newDesk(t)
		b := d.of(layout)
		switch long := strings.Repeat("x", 60<<10); layout {
		case brief.Planning:
			b.Drafts = []gate.Sealed{d.plan(long), d.faults(long)}
		default:
			b.Dependencies = []gate.Sealed{d.dep("One", "analyst", long), d.dep("Two", "analyst", long)}
		}
		whole := build(t, b).Text()
		for limit, want := range map[int]string{0: whole, len(whole): whole, promptBytes: whole, promptBytes + 1: whole, len(whole) - 1: "", 8 << 10: "", 1 << 10: ""} {
			b.MaxBytes, b.Whole = limit, false
			p := build(t, b)
			if want != "" {
				require.Equal(t, want, p.Text())
			} else {
				require.LessOrEqual(t, len(p.Text()), limit)
				require.Equal(t, 2, strings.Count(p.Text(), " of 60 KiB: data"), "both are cut, and say so")
				requireTiled(t, p.Receipt(), p.Receipt().Text, p.Text())
			}
			b.Whole = true
			_, _, err := prompt.Build(b)
			if want != "" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, brief.ErrTooLarge)
				require.ErrorContains(t, err, fmt.Sprintf("it has %d bytes, at most %d", len(whole), limit))
			}
		}
		b.MaxBytes, b.Whole = 10, false
		_, _, err := prompt.Build(b)
		require.ErrorIs(t, err, brief.ErrTooLarge)
	}
}

func TestCutErrorsAreFenced(t *testing.T) {
	t.Parallel()
	for _, status := range []task.Status{task.Failed, task.Skipped} {
		d := newDesk(t)
		b := d.synthesis("Find out why.")
		var list []gate.Sealed
		for range 30 {
			list = append(list, d.ended(status, "Ask", strings.Repeat("é", 60), strings.Repeat("x", 10<<10)))
		}
		if status == task.Failed {
			b.Failed = list
		} else {
			b.Skipped = list
		}
		text := build(t, b).Text()
		require.LessOrEqual(t, len(text), promptBytes)
		require.Greater(t, len(text), promptBytes-6<<10, "room for the fences was kept, and little more")
		require.Len(t, fences(text), 30)
	}
}

func TestMaxBytesNeverRaisesTheLimit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.synthesis("Find out why.")
	for range 70 {
		b.Dependencies = append(b.Dependencies, d.dep("Long", "analyst", strings.Repeat("x", 60<<10)))
	}
	b.MaxBytes = 10 * brief.MaxBytes
	require.LessOrEqual(t, len(build(t, b).Text()), brief.MaxBytes)
	b.Whole = true
	_, _, err := prompt.Build(b)
	require.ErrorIs(t, err, brief.ErrTooLarge)
}

func TestGoalsAreNeverCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("g", 60<<10)
	for layout := brief.Planning; layout <= brief.Synthesis; layout++ {
		d := newDesk(t)
		b := d.of(layout)
		b.Goal = new(d.goal(long))
		b.MaxBytes = 61 << 10
		if layout == brief.Planning {
			b.Drafts = []gate.Sealed{d.plan(long)}
		} else {
			b.Failed = []gate.Sealed{d.ended(task.Failed, "Ask", "analyst", long)}
		}
		require.Contains(t, build(t, b).Text(), long)
		b.MaxBytes = 60 << 10
		_, _, err := prompt.Build(b)
		require.ErrorIs(t, err, brief.ErrTooLarge)
	}
}

func TestSynthesesNeverExceedTheirSize(t *testing.T) {
	t.Parallel()
	units := rapid.SampledFrom([]string{"x", "é", "\U0001f600", "\n", "\\", fakeToken + " ", "ab\n"})
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t)
		b := d.synthesis(strings.Repeat("g", rapid.SampledFrom([]int{1, 10_000, 60_000}).Draw(t, "goal")))
		b.MaxBytes = rapid.SampledFrom([]int{16 << 10, 64 << 10, promptBytes}).Draw(t, "limit")
		for range rapid.IntRange(0, 7).Draw(t, "pieces") {
			unit := units.Draw(t, "unit")
			text := strings.Repeat(unit, rapid.SampledFrom([]int{0, 1, 1000, 30_000, 64 << 10}).Draw(t, "length")/len(unit))
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				b.Dependencies = append(b.Dependencies, d.digest("Part", text))
			case 1:
				b.Dependencies = append(b.Dependencies, d.dep("Analyse", "analyst", text))
			case 2:
				b.Memory = append(b.Memory, d.memory("critic", "key", text))
			case 3:
				b.Failed = append(b.Failed, d.ended(task.Failed, "Ask", "analyst", text))
			default:
				b.Skipped = append(b.Skipped, d.ended(task.Skipped, "Write", "runteam", text))
			}
		}
		limit := b.MaxBytes
		p, _, err := prompt.Build(b)
		if err != nil {
			require.ErrorIs(t, err, brief.ErrTooLarge)
			goal := b.Goal.Payload()
			require.Greater(t, goal.Size()+4096, limit, "only a goal can be too large here")
			return
		}
		require.LessOrEqual(t, len(p.Text()), limit)
		require.True(t, utf8.ValidString(p.Text()))
		requireTiled(t, p.Receipt(), p.Receipt().Text, p.Text())
	})
}

// The synthesis prompt of the TypeScript original, as COMPAT.md gives it.

type outcome struct{ title, by, text string }

func originalSynthesis(goal string, done, failed, skipped []outcome, duty string) string {
	lines := []string{"## Original Goal", "", goal}
	if len(done) > 0 {
		lines = append(lines, "", "## Task Results", "")
	}
	for _, o := range done {
		lines = append(lines, "### "+o.title+" (completed by "+o.by+")", o.text)
	}
	for _, ended := range []struct {
		heading, how, why string
		list              []outcome
	}{{"## Failed Tasks", "FAILED", "Error", failed}, {"## Skipped Tasks", "SKIPPED", "Reason", skipped}} {
		if len(ended.list) > 0 {
			lines = append(lines, "", ended.heading, "")
		}
		for _, o := range ended.list {
			lines = append(lines, "### "+o.title+" ("+ended.how+")", ended.why+": "+o.text)
		}
	}
	return strings.Join(append(lines, "", "## Your Task", "", duty), "\n")
}

func TestUnfencedSynthesisEqualsTheOriginal(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[a-zA-Z0-9*_.,:()<>|'/-][a-zA-Z0-9 #*_.,:()\[\]<>|"'/-]{0,20}`).Filter(clean)
	free := rapid.Map(rapid.SliceOfN(rapid.OneOf(word, rapid.SampledFrom([]string{"", " ", "## Your Task", "### x (FAILED)", "Error: y", "```"})), 1, 5), func(l []string) string { return strings.Join(l, "\n") }).
		Filter(func(s string) bool { return s != "" && clean(s) })
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t)
		goal := word.Draw(t, "goal") + "\n\n" + word.Draw(t, "more")
		b := d.synthesis(goal)
		some := func(what string, text *rapid.Generator[string], seal func(o outcome) gate.Sealed) (all []outcome, list []gate.Sealed) {
			for range rapid.IntRange(0, 3).Draw(t, what) {
				o := outcome{word.Draw(t, "title"), word.Filter(func(s string) bool { return !strings.Contains(s, `"`) }).Draw(t, "by"), text.Draw(t, "text")}
				all, list = append(all, o), append(list, seal(o))
			}
			return all, list
		}
		var done, failed, skipped []outcome
		done, b.Dependencies = some("results", free, func(o outcome) gate.Sealed { return d.dep(o.title, o.by, o.text) })
		failed, b.Failed = some("failed", word, func(o outcome) gate.Sealed { return d.ended(task.Failed, o.title, o.by, o.text) })
		skipped, b.Skipped = some("skipped", word, func(o outcome) gate.Sealed { return d.ended(task.Skipped, o.title, o.by, o.text) })
		text := build(t, b).Text()
		require.Equal(t, originalSynthesis(goal, done, failed, skipped, b.Task.Description), unfenced(text), "%s", text)
	})
}
