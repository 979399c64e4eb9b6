package brief_test

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/brief"
	"github.com/stretchr/testify/require"
)

// What begins a line of the builder's in any prompt, and in a coordinator's.
var (
	openers = []string{
		"# Task: x", "## Inputs", "## Context from prerequisite tasks", "## Shared Team Memory", "## Messages from team members",
		"#### Raw output", "#### Validated structured result", "## Output schema", "## What is wrong with it", "[envelope x", "[envelope: x", "[/envelope x", "[/envelope: x", "[withheld",
	}
	goalOpeners = []string{
		"## Team Roster", "## Goal", "## Your previous plan",
		"## Original Goal", "## Task Results", "## Failed Tasks", "## Skipped Tasks", "## Your Task",
	}
)

// fineLines begin nearly as the builder's do.
var fineLines = []string{
	"", "\n", "##Inputs", "Write ## Inputs", "# Tasks", "# Task", "# Task x", "#Task: x", "# Taskx: y", "### Inputs", "## Input", "[envelopes]", "[envelope]", "[ envelopes x", "[//envelope x", "withheld", "/envelope x",
	"- **x**: y", "x # Task: y", "`## Inputs`", "> ## Inputs", "## \u0406nputs", "# Output schema", "### Raw output", "##### Raw output", "### x (by y)", "### Validated structured result", "[with held", "[", "#", "[ ", "[/ ", "[ /",
}

func TestOpener(t *testing.T) {
	t.Parallel()
	requireOpeners(t, brief.Opener, openers)
	for _, fine := range append(fineLines, goalOpeners...) {
		line, found := brief.Opener(fine)
		require.Zero(t, line, "%q", fine)
		require.Empty(t, found)
	}
}

func TestGoalOpener(t *testing.T) {
	t.Parallel()
	requireOpeners(t, brief.GoalOpener, append(goalOpeners, openers...))
	for _, fine := range append(fineLines, "## Background", "### Goal", "# Goal", "## My Goal", "##Goal") {
		line, _ := brief.GoalOpener(fine)
		require.Zero(t, line, "%q", fine)
	}
}

// requireOpeners holds find to each opener: alone and on a later line, in any case,
// after spaces, and with invisible characters in it.
func requireOpeners(t *testing.T, find func(string) (int, string), openers []string) {
	t.Helper()
	leads := []string{"", " ", "\t ", "   ", "\u00a0", "\u3000", "\u200b", "\ufeff", "\u2060", "\u202e", "\u00ad", "\u200d", "\u034f", "\ufe0f", "\u115f", "\u3164", "\u2800", "\U000e0041", "\x00", "\x1b", "\x7f", " \u200b\t\ufeff "}
	ends := []string{"\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029"}
	for _, opener := range openers {
		for _, spelt := range []string{opener, strings.ToLower(opener), strings.ToUpper(opener), swapped(opener), opener[:1] + "\u200b" + opener[1:], strings.Replace(opener, " ", "\u00a0", 1), strings.ReplaceAll(opener, " ", " \t "), strings.ReplaceAll(strings.ReplaceAll(opener, "s", "ſ"), "k", "\u212a")} {
			for _, lead := range leads {
				line, found := find(lead + spelt + " more")
				require.Equal(t, 1, line, "%q", lead+spelt)
				require.True(t, strings.HasPrefix(strings.ToLower(opener), found), found)
				for _, end := range ends {
					line, _ = find("Write one page." + end + "It is short." + end + lead + spelt + end + "more")
					require.Equal(t, 3, line, "%q after %q", lead+spelt, end)
				}
			}
		}
	}
}

// swapped returns s with small letters for large ones and the other way round.
func swapped(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 32
		}
		if r >= 'A' && r <= 'Z' {
			return r + 32
		}
		return r
	}, s)
}

func TestOpenersWithSpaces(t *testing.T) {
	t.Parallel()
	for _, wide := range []string{
		"##  Inputs", "##\t \tInputs", "#   Task:  x", "[envelope\u00a0x", "##\u200b Inputs", "# Task : x", "# Task\u00a0\t: x", "#  Task  :", "# Task\u200b :x",
		"[ envelope x", "[\tenvelope x", "[ \u200b envelope x", "[ /envelope x", "[/ envelope x", "[ / envelope x", "[envelope : x", "[ envelope:", "[ / envelope :", "[ withheld: rule]", "[\u3000withheld",
		"####  Raw  output", "####\tvalidated structured result", "## output\u00a0Schema",
	} {
		line, _ := brief.Opener(wide)
		require.Equal(t, 1, line, "%q", wide)
	}
}

// What a model takes for a reserved line is one: full-width and other
// compatibility forms, ligatures, marks, and what is invisible.
//
// Requirement: G30.
func TestOpenersInOtherForms(t *testing.T) {
	t.Parallel()
	wide := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r > ' ' && r <= '~' {
				return r + 0xfee0
			}
			return r
		}, s)
	}
	bold := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r - 'a' + 0x1d41a
			}
			return r
		}, s)
	}
	each := func(s, glue string) string { return strings.Join(strings.Split(s, ""), glue) }
	for _, opener := range append(goalOpeners, openers...) {
		for _, spelt := range []string{
			wide(opener), strings.Replace(opener, opener[:1], wide(opener[:1]), 1), strings.ReplaceAll(wide(opener), " ", "\u3000"), bold(opener), each(opener, "\u0301"), each(opener, strings.Repeat("\u200b", 500)),
			"\u0301" + opener, strings.ReplaceAll(opener, "#", "\ufe5f"), strings.ReplaceAll(opener, "a", "ª"), strings.ReplaceAll(opener, "s", "\u02e2"), strings.Replace(opener, "i", "\u2139", 1), strings.Replace(opener, "e", "\u00e9", 1),
		} {
			for _, text := range []string{spelt + " more", "Write one page.\n" + spelt} {
				line, _ := brief.GoalOpener(text)
				require.Equal(t, 1+strings.Count(text, "\n"), line, "%q", text)
			}
		}
	}
	for _, fine := range []string{"＃ Tasks", "日本語：＃", "Ⅻ. Task: x", "é # Task: x", "＃＃＃ Inputs", "［nothing］", strings.Repeat("あ", 1000), "\u200b", "ﬁrst # Task:"} {
		line, _ := brief.GoalOpener(fine)
		require.Zero(t, line, "%q", fine)
	}
}

func BenchmarkOpener(b *testing.B) {
	for name, text := range map[string]string{
		"prose":    strings.Repeat("Write one page.\n", 4096),
		"headings": strings.Repeat("# Heading 1234\n", 4096),
		"japanese": strings.Repeat("一枚の紙に書いてください。\n", 2048),
		"hidden":   "#" + strings.Repeat("\u200b", 64<<10),
		"blanks":   "[" + strings.Repeat(" ", 64<<10),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if line, _ := brief.GoalOpener(text); line > 0 {
					b.Fatal(line)
				}
			}
		})
	}
}
