package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/llm/limit"
)

// app is one invocation of the command and everything of the outside that it
// touches, so that a test can put its own in the place of each.
type app struct {
	args   []string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	config     string                           // the folder of the user's configuration; empty means that of the system
	folder     string                           // from which a journal is looked for; empty means the working directory
	lookup     func(name string) (string, bool) // the environment
	now        func() time.Time
	isTerminal func(stream any) bool
	size       func(stream any) (width, height int) // of a terminal, in characters; 0, 0 if it does not say
	signals    <-chan os.Signal                     // SIGINT and SIGTERM
	exit       func(status int)                     // ends the process at once

	stopping <-chan struct{} // closed by the first signal
	settings settings
	screen   *screen // stderr; everything for people goes through it
	log      *slog.Logger
	limits   *limit.Group // of the endpoints that all runs of the command call
}

// newApp completes what main or a test filled in.
func newApp(a app) *app {
	a.screen = &screen{w: a.stderr, size: func() (int, int) { return a.size(a.stderr) }}
	a.log = slog.New(slog.DiscardHandler)
	a.limits = new(limit.Group)
	a.settings.guess(a.args, a.lookup)
	return &a
}

// run runs the command that the arguments name, and returns the exit status.
func (a *app) run() (status int) {
	defer func() {
		if p := recover(); p != nil {
			status = a.fail(&fault{kind: kindInternal, err: fmt.Errorf("this is a bug, please report it: %v\n%s", p, debug.Stack())})
		}
	}()
	ctx, stop := a.interruptible(context.Background())
	defer stop()
	a.stopping = ctx.Done()
	root := a.root()
	root.SetArgs(a.args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.screen)
	return a.fail(root.ExecuteContext(ctx))
}

// root is the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "runteam",
		Short: "Run a team of agents over a graph of tasks",
		Long: `runteam runs a team of LLM agents over a graph of tasks. Each agent sees its
task, the results that the task depends on, and nothing else. The tasks are
written in the spec, or planned by a coordinator for a goal.

A SPEC is a team file in YAML or JSON, a folder that holds team.yaml, team.yml
or team.json, or - for standard input. Without one it is the working directory.

Exit status: 0 success; 1 the run ended without success; 2 usage or a bad file;
3 could not run (no key, no endpoint, no model, or a journal that cannot be used
or whose run another process works on); 130 or 143 interrupted.`,
		Args: func(cmd *cobra.Command, args []string) error { return a.onlyCommands(cmd, args) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked, _ := cmd.Flags().GetBool("version"); asked {
				return a.printVersion()
			}
			return cmd.Help()
		},
		PersistentPreRunE:          func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return a.flagError(cmd, err) })
	a.settings.flags(root)
	root.Flags().Bool("version", false, "print the version")
	root.AddCommand(a.runCommand(), a.taskCommand(), a.resumeCommand(), a.checkCommand(), a.planCommand(), a.initCommand(), a.schemaCommand(), a.mockCommand(), a.trustCommand(), a.auditCommand(), a.explainCommand(), a.runsCommand(), a.showCommand(), a.replayCommand(), a.gcCommand(), a.versionCommand())
	a.completionCommand(root)
	helpCommand(root)
	return root
}

// helpCommand adds the command that prints help, and has it refuse words that
// are no command.
func helpCommand(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	cmd, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // it was added the line before
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		if err != nil || len(rest) == 0 || !about.HasSubCommands() {
			return err
		}
		return about.Args(about, rest)
	}
}

// completionCommand adds the command that prints completions, and has it refuse
// a shell that it does not know.
func (a *app) completionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // it was added the line before
	}
	var shells []string
	for _, sub := range cmd.Commands() {
		shells = append(shells, sub.Name())
		generate := sub.RunE
		sub.RunE = func(cmd *cobra.Command, args []string) error { return unwritten(generate(cmd, args)) }
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownWord("shell", args[0], shells)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// prepare settles what holds for every command, before it runs.
func (a *app) prepare(cmd *cobra.Command) error {
	if err := a.settings.settle(cmd, a.lookup); err != nil {
		return err
	}
	a.log = a.logger()
	return nil
}

// onlyCommands refuses words that are no command.
func (a *app) onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := `; "runteam help" lists the commands`
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError("unknown command %q%s", args[0], hint)
}

// flagError words an error of a flag, with the nearest flag that there is.
func (a *app) flagError(cmd *cobra.Command, err error) error {
	if !cmd.HasParent() { // a flag of a command that does not exist is the lesser fault
		if word, ok := firstWord(a.args); ok {
			return a.onlyCommands(cmd, []string{word})
		}
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return invalidValue(bad.GetFlag(), bad.GetValue(), err)
	}
	missing, ok := err.(*pflag.NotExistError) //nolint:errorlint // as pflag returns it
	if !ok || missing.GetSpecifiedShortnames() != "" {
		return usageError("%v; see %q", err, cmd.CommandPath()+" --help")
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	if near, ok := naming.Nearest(missing.GetSpecifiedName(), known); ok {
		return usageError("%v; did you mean --%s?", err, near)
	}
	return usageError("%v; see %q", err, cmd.CommandPath()+" --help")
}

// invalidValue says what to write as the value of a flag.
func invalidValue(f *pflag.Flag, value string, err error) error {
	switch f.Value.Type() {
	case "bool":
		return usageError("--%s %q: write true or false", f.Name, value)
	case "int":
		return usageError("--%s %q: write a whole number, such as %s", f.Name, value, examples[f.Name])
	case "duration":
		if n, err := strconv.Atoi(value); err == nil {
			return usageError("--%s %d: a time has a unit: write %ds or %dm", f.Name, n, n, n)
		}
		return usageError("--%s %q: write a time such as 90s or 5m", f.Name, value)
	}
	return usageError("%v", err)
}

// examples are values of the flags that take a number.
var examples = map[string]string{"max-concurrency": "5", "max-token-budget": "20000"}

// firstWord returns the first argument that is neither a flag nor the value of one of all commands.
func firstWord(args []string) (string, bool) {
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

// atMostOne accepts one argument or none.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError("%s takes one SPEC, not %d: %s", cmd.CommandPath(), len(args), strings.Join(args, " "))
	}
	return nil
}
