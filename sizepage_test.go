package runteam_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const sizePage = `
## Totals

| total | base | counts |
| --- | --- | --- |
| code lines | 1,005 | x |
| tokens | 1,005 | x |
| lines in knots | 1,005 | x |
| exported names | 7 | x |
| fields above 30 | 2 | x |
| operations above 40 | 300 | x |
| lines above 60 | 0 | x |

## Why a total grew

| total | by | why |
| --- | --- | --- |
| exported names | 1 | one name more for a reason |

## Structs

| fields | struct |
| --- | --- |
| 31 | ` + "`p.a`" + ` |
| 31 | ` + "`p.b`" + ` |

## Types

| operations | type |
| --- | --- |
| 340 | ` + "`p.a`" + ` |

## Knots

| per cent | package |
| --- | --- |
| 100 | ` + "`p`" + ` |

## Functions

| lines | function |
| --- | --- |
`

// sizedAsWritten is what sizePage says.
func sizedAsWritten() measurement {
	return measurement{
		map[string]packageSize{"p": {lines: 1000, tokens: 1000, exported: 8, knotLines: 1000}},
		map[string]int{"p.a": 31, "p.b": 31, "p.c": 30},
		map[string]int{"p.a": 340, "p.b": 40},
		map[string]int{"p.f": 60},
	}
}

func TestSizePage(t *testing.T) {
	t.Parallel()
	page, problems := checkSize(sizePage, sizedAsWritten(), false)
	require.Empty(t, problems)
	require.Equal(t, sizePage, page)
	inPackage := func(change func(*packageSize)) func(measurement) {
		return func(m measurement) {
			p := m.packages["p"]
			change(&p)
			m.packages["p"] = p
		}
	}
	for name, c := range map[string]struct {
		change  func(m measurement)
		problem string // "" if the page allows the change
		lowered string // a line of the page afterwards, if -update allows the change
	}{
		"a larger struct":         {func(m measurement) { m.fields["p.c"] = 31 }, `p.c: 31 fields, more than 30.*write "\| 31 \| .p.c. \|" under "Structs"`, ""},
		"a larger listed struct":  {func(m measurement) { m.fields["p.a"] = 32 }, `p.a: 32 fields, and docs/size.md lists it with 31`, ""},
		"another listed struct":   {func(m measurement) { m.fields["p.a"], m.fields["p.b"] = 30, 32 }, `p.b: 32 fields, and docs/size.md lists it with 31`, ""},
		"a smaller struct":        {func(m measurement) { m.fields["p.b"] = 30 }, `p.b has no more than 30 fields`, "| fields above 30 | 1 | x |"},
		"a removed struct":        {func(m measurement) { delete(m.fields, "p.b") }, `p.b has no more than 30 fields`, "| fields above 30 | 1 | x |"},
		"more operations":         {func(m measurement) { m.operations["p.a"]++ }, `p.a: 341 operations`, ""},
		"the sum of operations":   {func(m measurement) { m.operations["p.a"]++ }, `301 operations above 40, 1 more than docs/size.md allows`, ""},
		"fewer operations":        {func(m measurement) { m.operations["p.a"]-- }, `lowers it, to "\| 339 \| .p.a. \|"`, "| 339 | `p.a` |"},
		"far fewer operations":    {func(m measurement) { m.operations["p.a"] = 140 }, `100 operations above 40, and docs/size.md allows 300`, "| operations above 40 | 100 | x |"},
		"a longer function":       {func(m measurement) { m.functions["p.f"] = 61 }, `p.f: 61 lines, more than 60`, ""},
		"lines within the base":   {inPackage(func(p *packageSize) { p.lines += 5 }), "", ""},
		"lines beyond the base":   {inPackage(func(p *packageSize) { p.lines += 6 }), `1006 code lines, 1 more than docs/size.md allows`, ""},
		"fewer lines":             {inPackage(func(p *packageSize) { p.lines -= 5 }), "", ""},
		"far fewer lines":         {inPackage(func(p *packageSize) { p.lines, p.knotLines = 900, 900 }), `lowers the base, to 904`, "| code lines | 904 | x |"},
		"more tokens":             {inPackage(func(p *packageSize) { p.tokens += 6 }), `1006 tokens, 1 more`, ""},
		"a larger knot":           {inPackage(func(p *packageSize) { p.lines, p.knotLines = 1005, 1006 }), `1006 lines in knots, 1 more`, ""},
		"a smaller knot":          {inPackage(func(p *packageSize) { p.lines, p.knotLines = 1005, 995 }), "", ""},
		"a far smaller knot":      {inPackage(func(p *packageSize) { p.knotLines = 900 }), `p: 90 per cent, and docs/size.md lists it with 100`, "| 91 | `p` |"},
		"an untied knot":          {inPackage(func(p *packageSize) { p.knotLines = 0 }), `p has no more than 25 per cent`, "| lines in knots | 0 | x |"},
		"a new knot":              {func(m measurement) { m.packages["q"] = packageSize{lines: 800, knotLines: 208} }, `q: 26 per cent, more than 25`, ""},
		"a small package":         {func(m measurement) { m.packages["q"] = packageSize{lines: 5, knotLines: 5} }, "", ""},
		"a new exported name":     {inPackage(func(p *packageSize) { p.exported++ }), `9 exported names, 1 more.*write "\| exported names \| 1 \| the reason \|"`, ""},
		"a removed exported name": {inPackage(func(p *packageSize) { p.exported-- }), `7 exported names, and docs/size.md allows 8: .* lowers the base, to 6`, "| exported names | 6 | x |"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := sizedAsWritten()
			c.change(m)
			_, problems := checkSize(sizePage, m, false)
			updated, left := checkSize(sizePage, m, true)
			if c.problem == "" {
				require.Empty(t, problems)
				require.Equal(t, sizePage, updated)
				return
			}
			require.Regexp(t, c.problem, strings.Join(problems, "\n"))
			if c.lowered == "" {
				require.Regexp(t, c.problem, strings.Join(left, "\n"), "-update raises nothing")
				return
			}
			require.Empty(t, left)
			require.Contains(t, updated, c.lowered)
			_, problems = checkSize(updated, m, false)
			require.Empty(t, problems)
		})
	}
}

func TestSizePageWithErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, problem string }{
		"no reason":       {"one name more for a reason", "so", "a reason"},
		"negative":        {"| 1 | one name", "| -1 | one name", "needs a number that adds"},
		"no total":        {"| exported names | 1 |", "| exportd names | 1 |", `a reason is for "exportd names", which is no total`},
		"no number":       {"| 340 |", "| much |", `"much" is no number`},
		"twice":           {"`p.b`", "`p.a`", "lists p.a twice"},
		"cells":           {"| 340 | ", "| 340 | 1 | ", "has 3 cells; the table has 2"},
		"no table":        {"## Knots", "## Nots", `no table under "Knots"`},
		"order of totals": {"| tokens |", "| words |", "row 2 of the totals is that of tokens"},
		"more totals":     {"| lines above 60 | 0 | x |", "| lines above 60 | 0 | x |\n| more | 0 | x |", `there is no total "more"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, sizePage, c.old)
			_, problems := checkSize(strings.Replace(sizePage, c.old, c.new, 1), sizedAsWritten(), false)
			require.Contains(t, strings.Join(problems, "\n"), c.problem)
		})
	}
}
