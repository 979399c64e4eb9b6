package cli

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/runteam/runteam/internal/naming"
	"github.com/spf13/cobra"
)

// envOutput names the environment variable that --output goes before.
const envOutput = "RUNTEAM_OUTPUT"

var (
	formats = []string{"text", "json"}
	levels  = []string{"debug", "info", "warn", "error"}
)

// settings hold for every command: the form of what it prints.
type settings struct {
	output   string // one of the forms of the command, once settled
	pretty   bool
	logLevel string
	level    slog.Level
}

// json reports whether stdout gets a JSON document.
func (s *settings) json() bool { return s.output == "json" }

// flags adds the flags of all commands.
func (s *settings) flags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVarP(&s.output, "output", "o", s.output, "`FORM` of the result on stdout: text or json, of a plan also dot or mermaid (default text, or $"+envOutput+")")
	f.Lookup("output").DefValue = ""
	f.BoolVar(&s.pretty, "pretty", false, "indent JSON")
	f.StringVar(&s.logLevel, "log-level", "warn", "log from this `LEVEL` on to stderr: debug, info, warn or error")
	completeWith(root, "output", formsOf)
	complete(root, "log-level", levels)
}

// alsoForms names the annotation of a command that prints more forms than others.
const alsoForms = "runteam_forms"

// formsOf returns the forms that a command prints.
func formsOf(cmd *cobra.Command) []string {
	return append(slices.Clone(formats), strings.Fields(cmd.Annotations[alsoForms])...)
}

// complete tells shells the values of a flag.
func complete(cmd *cobra.Command, flag string, values []string) {
	completeWith(cmd, flag, func(*cobra.Command) []string { return values })
}

// completeWith tells shells the values of a flag that depend on the command.
func completeWith(cmd *cobra.Command, flag string, values func(*cobra.Command) []string) {
	completeBy(cmd, flag, func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return values(cmd), cobra.ShellCompDirectiveNoFileComp
	})
}

// completeBy has a function complete the value of a flag.
func completeBy(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the flag was added the line before
	}
}

// settle checks the flags and fills in the environment and the defaults.
func (s *settings) settle(cmd *cobra.Command, lookup func(string) (string, bool)) error {
	given := cmd.Flags().Changed("output")
	original, form := cmd.Annotations[originalForm] != "", cmd.CommandPath()
	if t := cmd.Flags().Lookup("team"); t != nil && t.Annotations[originalForm] != nil && t.Changed {
		original, form = true, form+" --team"
	}
	if given && !slices.Contains(formsOf(cmd), s.output) {
		text := s.output
		s.output = ""
		return wrongForm(cmd, "--output", text)
	}
	if fromEnv, ok := lookup(envOutput); !given && ok && fromEnv != "" && !slices.Contains(formats, fromEnv) {
		return unknownWord(envOutput, fromEnv, formats)
	}
	if original && s.output != "json" {
		s.output = "json"
		if given {
			return usageError("%s prints JSON always: leave out --output", form)
		}
	}
	if s.pretty && !s.json() {
		return usageError("--pretty indents JSON: add --output json")
	}
	if err := s.level.UnmarshalText([]byte(s.logLevel)); err != nil || !slices.Contains(levels, s.logLevel) {
		return unknownWord("--log-level", s.logLevel, levels)
	}
	return nil
}

// wrongForm refuses a form that a command does not print.
func wrongForm(cmd *cobra.Command, name, form string) error {
	if slices.Contains(graphForms, form) {
		return usageError("%s %s: only plan draws a graph; %s prints text or json", name, form, cmd.CommandPath())
	}
	return unknownWord(name, form, formsOf(cmd))
}

// graphForms are the forms in which plan draws a graph.
var graphForms = []string{"dot", "mermaid"}

// originalForm marks commands and flags with which JSON is printed always, as the original does.
const originalForm = "runteam_original"

// guess reads the form of the output ahead of all parsing, so that an error
// of the arguments themselves has it too. What it leaves is the default of the flag.
func (s *settings) guess(args []string, lookup func(string) (string, bool)) {
	s.output = "text"
	if fromEnv, _ := lookup(envOutput); slices.Contains(formats, fromEnv) {
		s.output = fromEnv
	}
	for i, arg := range args {
		if arg == "--" {
			break
		}
		value, ok := strings.CutPrefix(arg, "--output=")
		if !ok {
			value, ok = strings.CutPrefix(arg, "-o")
			value = strings.TrimPrefix(value, "=")
		}
		if (arg == "--output" || arg == "-o") && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if ok && slices.Contains(formats, value) {
			s.output = value
		}
		s.pretty = s.pretty || arg == "--pretty"
	}
	word, _ := firstWord(args)
	team := slices.ContainsFunc(args, func(arg string) bool { return arg == "--team" || strings.HasPrefix(arg, "--team=") })
	if word == "task" || word == "schema" || word == "run" && team {
		s.output = "json"
	}
}

// unknownWord refuses a value that is none of the known words.
func unknownWord(name, word string, known []string) error {
	hint := "write " + strings.Join(known[:len(known)-1], ", ") + " or " + known[len(known)-1]
	if near, ok := naming.Nearest(word, known); ok {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return usageError("%s %q: %s", name, word, hint)
}

// logger writes to stderr from the settled level on. It gets names and counts, never payloads.
func (a *app) logger() *slog.Logger {
	return slog.New(tint.NewTextHandler(a.screen, &tint.Options{
		Level: a.settings.level, TimeFormat: time.TimeOnly, NoColor: !a.colors(),
	}))
}

// colors reports whether stderr may be colored: https://no-color.org.
func (a *app) colors() bool {
	set, _ := a.lookup("NO_COLOR")
	return set == "" && a.canMove()
}

// canMove reports whether stderr is a terminal that understands escape sequences.
func (a *app) canMove() bool {
	kind, _ := a.lookup("TERM")
	return kind != "dumb" && a.isTerminal(a.stderr)
}
