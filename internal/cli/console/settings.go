package console

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FirstWord returns the first argument that is neither a flag nor the value of a global flag.
func FirstWord(args []string) (string, bool) {
	for i := 0; i < len(args); i++ {
		switch word := args[i]; {
		case word == "-o" || word == "--output" || word == "--log-level":
			i++
		case !strings.HasPrefix(word, "-"):
			return word, true
		}
	}
	return "", false
}

// EnvOutput names the environment variable for the form of the output. --output takes precedence.
const EnvOutput = "RUNTEAM_OUTPUT"

var (
	formats   = []string{"text", "json"}
	LogLevels = []string{"debug", "info", "warn", "error"}
)

// Settings are the global flags: the form of the output and the log level.
type Settings struct {
	Output   string // one of the forms of the command, once resolved
	pretty   bool
	logLevel string
	Level    slog.Level
	Undone   string // what a command with a bad file has not done; empty means that nothing was run
}

// JSON reports whether the command prints JSON on stdout.
func (s *Settings) JSON() bool { return s.Output == "json" }

// Flags adds the global flags.
func (s *Settings) Flags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVarP(&s.Output, "output", "o", s.Output, "`FORM` of the result on stdout: text or json, of a plan also dot or mermaid (default text, or $"+EnvOutput+")")
	f.Lookup("output").DefValue = ""
	f.BoolVar(&s.pretty, "pretty", false, "indent JSON")
	f.StringVar(&s.logLevel, "log-level", "warn", "log messages of this `LEVEL` and above on stderr: debug, info, warn or error")
	flags.CompleteWith(root, "output", formsOf)
	flags.Complete(root, "log-level", LogLevels)
}

// FormsAnnotation names the annotation that lists further forms of a command's output.
const FormsAnnotation = "runteam_forms"

// formsOf returns the forms in which a command prints its result.
func formsOf(cmd *cobra.Command) []string {
	return append(slices.Clone(formats), strings.Fields(cmd.Annotations[FormsAnnotation])...)
}

// Resolve checks the flags and applies the environment and the defaults.
func (s *Settings) Resolve(cmd *cobra.Command, lookup func(string) (string, bool)) error {
	given := cmd.Flags().Changed("output")
	original, form := cmd.Annotations[OriginalAnnotation] != "", cmd.CommandPath()
	if t := cmd.Flags().Lookup("team"); t != nil && t.Annotations[OriginalAnnotation] != nil && t.Changed {
		original, form = true, form+" --team"
	}
	if given && !slices.Contains(formsOf(cmd), s.Output) {
		text := s.Output
		s.Output = ""
		return wrongForm(cmd, "--output", text)
	}
	if fromEnv, ok := lookup(EnvOutput); !given && ok && fromEnv != "" && !slices.Contains(formats, fromEnv) {
		return exit.UnknownWord(EnvOutput, fromEnv, formats)
	}
	if original && s.Output != "json" {
		s.Output = "json"
		if given {
			return exit.Usagef("%s always prints JSON: leave out --output", form)
		}
	}
	if s.pretty && !s.JSON() {
		return exit.Usagef("--pretty indents JSON: add --output json")
	}
	if err := s.Level.UnmarshalText([]byte(s.logLevel)); err != nil || !slices.Contains(LogLevels, s.logLevel) {
		return exit.UnknownWord("--log-level", s.logLevel, LogLevels)
	}
	return nil
}

// wrongForm returns the error for a form that the command does not have.
func wrongForm(cmd *cobra.Command, name, form string) error {
	if slices.Contains(GraphForms, form) {
		return exit.Usagef("%s %s: only plan draws a graph; %s prints text or json", name, form, cmd.CommandPath())
	}
	return exit.UnknownWord(name, form, formsOf(cmd))
}

// GraphForms are the forms in which plan draws a graph.
var GraphForms = []string{"dot", "mermaid"}

// OriginalAnnotation marks commands and flags of the TypeScript original, with which the command
// always prints JSON.
const OriginalAnnotation = "runteam_original"

// guess reads the form of the output before the flags are parsed, so that errors about the
// arguments have that form too. Its result is the default of the flag.
func (s *Settings) guess(args []string, lookup func(string) (string, bool)) {
	s.Output = "text"
	if fromEnv, _ := lookup(EnvOutput); slices.Contains(formats, fromEnv) {
		s.Output = fromEnv
	}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.ParseErrorsAllowlist.UnknownFlags = true
	form, team := f.StringP("output", "o", "", ""), f.String("team", "", "")
	f.BoolVar(&s.pretty, "pretty", false, "")
	f.BoolP("help", "h", false, "") // else pflag prints the usage
	_ = f.Parse(args)               // the command reports the error
	if slices.Contains(formats, *form) {
		s.Output = *form
	}
	word, _ := FirstWord(args)
	if word == "task" || word == "schema" || word == "run" && *team != "" {
		s.Output = "json"
	}
}

// NewLogger returns a logger for stderr with the level of the flags. It gets names and counts,
// never payloads.
func (c *Console) NewLogger() *slog.Logger {
	return slog.New(tint.NewTextHandler(c.Screen, &tint.Options{
		Level: c.Settings.Level, TimeFormat: time.TimeOnly, NoColor: !c.Colors(),
	}))
}

// Colors reports whether stderr may be colored: https://no-color.org.
func (c *Console) Colors() bool {
	set, _ := c.LookupEnv("NO_COLOR")
	return set == "" && c.CanRedraw()
}

// CanRedraw reports whether stderr is a terminal that understands escape sequences.
func (c *Console) CanRedraw() bool {
	kind, _ := c.LookupEnv("TERM")
	return kind != "dumb" && c.IsTerminal(c.Stderr)
}
