package prompt_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Requirement: G4.
func TestContextComesAsSealedOnly(t *testing.T) {
	t.Parallel()
	// Whatever else a brief holds is written in the spec. A field that this
	// test does not know must be thought about before it is added here.
	spec := map[string]reflect.Type{
		"Contract": reflect.TypeFor[gate.Contract](), "Task": reflect.TypeFor[*task.Task](), "Untitled": reflect.TypeFor[bool](), "Passed": reflect.TypeFor[bool](),
		"System": reflect.TypeFor[string](), "SystemParams": reflect.TypeFor[[]provenance.Param](), "SystemOrigin": reflect.TypeFor[string](), "Schema": reflect.TypeFor[string](), "FormatSchema": reflect.TypeFor[string](),
		"Layout": reflect.TypeFor[brief.Layout](), "Guidance": reflect.TypeFor[string](), "MaxBytes": reflect.TypeFor[int](), "MaxContext": reflect.TypeFor[int](), "Whole": reflect.TypeFor[bool](),
		"Part": reflect.TypeFor[int](), "Parts": reflect.TypeFor[int](), "GoalParams": reflect.TypeFor[[]provenance.Param](),
		"Tools":   reflect.TypeFor[[]brief.Tool](), // fixed before the run was checked, and untrusted if a server defined them
		"Context": reflect.TypeFor[brief.Context](),
	}
	made := reflect.TypeFor[brief.Brief]()
	for f := range made.Fields() {
		require.Equal(t, spec[f.Name], f.Type, f.Name)
	}
	for f := range reflect.TypeFor[brief.Context]().Fields() {
		require.Contains(t, []reflect.Type{reflect.TypeFor[[]gate.Sealed](), reflect.TypeFor[*gate.Sealed]()}, f.Type, f.Name)
	}
	made = reflect.TypeFor[prompt.Prompt]()
	for f := range made.Fields() {
		require.False(t, f.IsExported(), "a prompt has one constructor")
	}
}

// Requirement: G4.
func TestBuildRefusesContextSealedForAnotherPrompt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*desk, *brief.Brief){
		"the zero value":  func(_ *desk, b *brief.Brief) { b.Dependencies = append(b.Dependencies, gate.Sealed{}) },
		"another session": func(_ *desk, b *brief.Brief) { b.Contract.Session = "r1/t-down/2" },
		"another reader":  func(_ *desk, b *brief.Brief) { b.Contract.Callee = "critic" },
		"another task": func(_ *desk, b *brief.Brief) {
			b.Contract.Task, b.Task = "t-x", &task.Task{ID: "t-x", Spec: task.Spec{Title: "x"}}
		},
		"no contract": func(_ *desk, b *brief.Brief) {
			b.Contract, b.Task = gate.Contract{}, &task.Task{Spec: task.Spec{Title: "x"}}
		},
		"a task of another":        func(_ *desk, b *brief.Brief) { b.Task = &task.Task{ID: "t-x", Spec: task.Spec{Title: "x"}} },
		"no task":                  func(_ *desk, b *brief.Brief) { b.Task = nil },
		"the zero value, an input": func(_ *desk, b *brief.Brief) { b.Inputs = make([]gate.Sealed, 1) },
		"the zero value, memory":   func(_ *desk, b *brief.Brief) { b.Memory = make([]gate.Sealed, 1) },
		"the zero value, messages": func(_ *desk, b *brief.Brief) { b.Messages = make([]gate.Sealed, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			b := d.brief()
			b.Dependencies = []gate.Sealed{d.dep("Analyse", "analyst", "x")}
			build(t, b)
			change(d, &b)
			p, _, err := prompt.Build(b)
			require.ErrorIs(t, err, gate.ErrUnsealed)
			require.Zero(t, p)
		})
	}
}

// Requirement: G4.
func TestWithheldLinesBelongToTheirContract(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	b.Dependencies = []gate.Sealed{d.withheld("w", func(c *gate.Compartment, _ *gate.Offer) { c.Contract.Grants = nil })}
	build(t, b)
	b.Contract.Session = "r1/t-down/2"
	_, _, err := prompt.Build(b)
	require.ErrorIs(t, err, gate.ErrUnsealed)
}

func TestZeroPrompt(t *testing.T) {
	t.Parallel()
	var p prompt.Prompt
	require.Empty(t, p.Text()+p.System()+p.Schema())
	require.Empty(t, p.Sections())
	require.Empty(t, p.Receipt().Text)
	_, ok := p.Structured("x")
	require.False(t, ok)
}

func TestSections(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	b.Inputs = []gate.Sealed{d.input("report", "numbers")}
	b.Dependencies = []gate.Sealed{
		d.seal(handoff.Dependency, "Score It", "analyst", structured(t, `{"score":3}`).WithText("left behind"), task.Structured),
		d.withheld("Withheld", func(c *gate.Compartment, _ *gate.Offer) { c.Contract.Grants = nil }),
	}
	p := build(t, b)
	want := []prompt.Section{
		{Kind: handoff.Input, Title: "report", From: "user", Text: "numbers"},
		{Kind: handoff.Dependency, Title: "Score It", From: "analyst", JSON: `{"score":3}`},
		{Kind: handoff.Dependency, Title: "Withheld", From: "analyst", Withheld: gate.ReasonRule},
	}
	require.Equal(t, want, p.Sections())
	p.Sections()[0].Text = "changed"
	require.Equal(t, want, p.Sections())
	canonical, ok := p.Structured(" score it")
	require.True(t, ok)
	require.Equal(t, `{"score":3}`, canonical)
	b.Inputs = append(b.Inputs, d.seal(handoff.Input, "report", handoff.User, structured(t, `{"a":1}`)))
	_, ok = build(t, b).Structured("report")
	require.False(t, ok, "an input is no dependency")
}

// Requirement: G35.
func TestCutsAreMarked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	long := strings.Repeat("x", 100<<10)
	b.Inputs = []gate.Sealed{d.input("long", long)}
	b.Dependencies = []gate.Sealed{d.seal(handoff.Dependency, "Both", "analyst", structured(t, `"`+strings.Repeat("y", 60<<10-2)+`"`).WithText(long), task.Both)}
	text := build(t, b).Text()
	heads := fenceLine.FindAllStringSubmatch(text, -1)
	require.Equal(t, ", cut 64 of 100 KiB", heads[0][4])
	require.Equal(t, ", cut 4 of 100 KiB", heads[1][4], "of the text")
	require.Empty(t, heads[2][4], "the structured part is whole")
}

// Requirement: G35.
func TestTextCutToNothingIsStillMarked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	b.Dependencies = []gate.Sealed{d.seal(handoff.Dependency, "Both", "analyst", structured(t, `"`+strings.Repeat("y", contextBytes-2)+`"`).WithText("2048 bytes: "+strings.Repeat("x", 2036)), task.Both)}
	text := build(t, b).Text()
	require.NotContains(t, text, "#### Raw output")
	require.Equal(t, ", cut 0 of 2 KiB", fenceLine.FindStringSubmatch(text)[4])
}

// Requirement: G35.
func TestCutMemoryAndMessagesAreMarked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	b.Memory = []gate.Sealed{d.memory("analyst", "k", strings.Repeat("x", 100<<10))}
	b.Messages = []gate.Sealed{d.message("critic", strings.Repeat("y", 100<<10))}
	text := build(t, b).Text()
	heads := fenceLine.FindAllStringSubmatch(text, -1)
	require.Equal(t, ", cut 64 of 100 KiB", heads[0][4])
	require.Equal(t, ", cut 64 of 100 KiB", heads[1][4], "a message that something was done to stands in a fence")
}

func TestTextsAreCutToOneLength(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	for i := range 6 {
		b.Dependencies = append(b.Dependencies, d.dep(fmt.Sprintf("Long %d", i), "analyst", strings.Repeat("x", 60<<10+i)))
	}
	b.Dependencies = append(b.Dependencies, d.dep("Short", "analyst", strings.Repeat("s", 5<<10)))
	b.Inputs = []gate.Sealed{d.input("long", strings.Repeat("y", 64<<10))}
	p := build(t, b)
	require.LessOrEqual(t, len(p.Text()), promptBytes)
	require.Greater(t, len(p.Text()), promptBytes-1024, "and no more is cut than must be")
	var lengths []int
	for _, s := range p.Sections() {
		if s.Title == "Short" {
			require.Len(t, s.Text, 5<<10, "what fits stays whole")
			continue
		}
		lengths = append(lengths, len(s.Text))
	}
	for _, n := range lengths {
		require.Equal(t, lengths[0], n)
	}
	cut := fmt.Sprintf(", cut %.1f of 6", float64(lengths[0])/1024)
	require.Equal(t, 7, strings.Count(p.Text(), cut), cut)
	requireTiled(t, p.Receipt(), p.Receipt().Text, p.Text())
	for i, s := range b.Dependencies[:6] {
		require.Len(t, s.Payload().Text(), 60<<10+i, "the brief itself stays as it is")
		require.Zero(t, s.Decision().CutFrom)
	}
}

func init() { slowtest.Checks(25) }

func TestPromptsNeverExceedTheirSize(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	units := rapid.SampledFrom([]string{"x", "é", "\U0001f600", "\n", "\\", fakeToken + " ", "ab\n"})
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t)
		d.task.Description = strings.Repeat("d", rapid.SampledFrom([]int{0, 10, 100 << 10, 200 << 10, 255 << 10}).Draw(t, "description"))
		b := d.brief()
		for range rapid.IntRange(0, 7).Draw(t, "pieces") {
			unit := units.Draw(t, "unit")
			text := strings.Repeat(unit, rapid.SampledFrom([]int{0, 1, 1000, 30_000, 64 << 10}).Draw(t, "length")/len(unit))
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				b.Inputs = append(b.Inputs, d.input("in", text))
			case 1:
				b.Dependencies = append(b.Dependencies, d.dep("dep", "analyst", text))
			case 2:
				b.Memory = append(b.Memory, d.memory("critic", "key", text))
			default:
				b.Messages = append(b.Messages, d.message("critic", text))
			}
		}
		p, _, err := prompt.Build(b)
		if err != nil {
			require.ErrorIs(t, err, brief.ErrTooLarge)
			require.Greater(t, len(d.task.Description), 250<<10, "only instructions can be too large here")
			return
		}
		require.LessOrEqual(t, len(p.Text()), promptBytes)
		require.True(t, utf8.ValidString(p.Text()))
		requireTiled(t, p.Receipt(), p.Receipt().Text, p.Text())
	})
}

// Requirement: G35.
func TestNothingIsCutWithoutATrace(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	step := 4
	if slowtest.Enabled() {
		step = 1
	}
	for room := 0; room < 60; room += step { // down to less than the placeholder needs
		d := newDesk(t)
		b := d.brief()
		b.Dependencies = []gate.Sealed{d.dep("Analyse", "analyst", fakeToken+" "+strings.Repeat("x", 50_000))}
		whole := len(build(t, b).Text())
		d.task.Description += strings.Repeat("d", promptBytes-(whole-50_017)-32-room)
		p, _, err := prompt.Build(b)
		if err != nil {
			require.ErrorIs(t, err, brief.ErrTooLarge)
			require.Zero(t, room)
			continue
		}
		require.Contains(t, p.Text(), "### Analyse (by analyst)\n[envelope ")
		require.Contains(t, p.Text(), ", redacted 1, cut 0")
	}
}

func TestCutMessagesAreFenced(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	for range 6 {
		b.Messages = append(b.Messages, d.message("critic", strings.Repeat("x", 60<<10)))
	}
	text := build(t, b).Text()
	require.LessOrEqual(t, len(text), promptBytes)
	require.Greater(t, len(text), promptBytes-2048, "room for the fences was kept, and little more")
	require.Len(t, fences(text), 6)
}

func TestMemoryThatGrowsWhenWrittenStillFits(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.task.Description = strings.Repeat("d", 200<<10)
	b := d.brief()
	b.Memory = []gate.Sealed{d.memory("critic", "a", strings.Repeat("\n", 64<<10)), d.memory("critic", "b", strings.Repeat("\x1c", 64<<10))}
	p := build(t, b)
	require.LessOrEqual(t, len(p.Text()), promptBytes)
	require.Greater(t, len(p.Text()), 210<<10, "and something of it is left")
}

func TestInstructionsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.task.Description = strings.Repeat("x", promptBytes-len("# Task: Write it up\n\n"))
	require.Len(t, build(t, d.brief()).Text(), promptBytes)
	d.task.Description += "x"
	_, _, err := prompt.Build(d.brief())
	require.ErrorIs(t, err, brief.ErrTooLarge)

	d = newDesk(t)
	b := d.brief()
	for range 5 { // structured values are never cut
		b.Dependencies = append(b.Dependencies, d.seal(handoff.Dependency, "Big", "analyst", structured(t, `"`+strings.Repeat("y", 60<<10)+`"`), task.Structured))
	}
	_, _, err = prompt.Build(b)
	require.ErrorIs(t, err, brief.ErrTooLarge)
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{0, 1, 3, 1000} {
		b.Run(fmt.Sprintf("%d dependencies", n), func(b *testing.B) {
			d := newDesk(b)
			brief := d.brief()
			for range n {
				brief.Dependencies = append(brief.Dependencies, d.dep("Analyse", "analyst", strings.Repeat("word ", 1024/5)))
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := prompt.Build(brief); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
