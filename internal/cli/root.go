package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/cli/chat"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/runteam/runteam/internal/cli/export"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/cli/people"
	"github.com/runteam/runteam/internal/cli/plan"
	"github.com/runteam/runteam/internal/cli/replay"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/serve"
	"github.com/runteam/runteam/internal/cli/steering"
	"github.com/runteam/runteam/internal/cli/submit"
	"github.com/runteam/runteam/internal/cli/tools"
	"github.com/runteam/runteam/internal/cli/verify"
	"github.com/runteam/runteam/internal/naming"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runCommandLine runs the command that the arguments name and returns the exit status.
func runCommandLine(con *console.Console) (status int) {
	defer func() {
		if p := recover(); p != nil {
			status = con.Report(exit.Bug(p))
		}
	}()
	ctx, stop := con.Interruptible(context.Background())
	defer stop()
	con.Stopping = ctx.Done()
	root := root(con)
	root.SetArgs(append([]string{}, con.Args...)) // not nil, which would mean the arguments of the process
	return con.Report(root.ExecuteContext(ctx))
}

// root returns the command tree.
func root(con *console.Console) *cobra.Command {
	root := &cobra.Command{
		Use:   "runteam",
		Short: "Run a team of agents over a graph of tasks",
		Long: `runteam runs a team of LLM agents over a graph of tasks. Each agent sees its
task, the results that the task depends on, and nothing else. The tasks are
written in the spec, or planned by a coordinator for a goal.

A SPEC is a spec file in YAML or JSON, a folder that holds team.yaml, team.yml
or team.json, or - for standard input. The default is the working directory.

Exit status: 0 success; 1 the run ended without success; 2 usage or a bad file;
3 could not run (no key, no endpoint, no model, an unusable journal, or a run that
another process works on); 4 the run is suspended, and waits for the answers of
people; 130 or 143 interrupted.`,
		Args: func(cmd *cobra.Command, args []string) error { return onlyCommands(con, cmd, args) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wanted, _ := cmd.Flags().GetBool("version"); wanted {
				return printVersion(con)
			}
			return cmd.Help()
		},
		PersistentPreRunE:          func(cmd *cobra.Command, _ []string) error { return prepare(con, cmd) },
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(con, cmd, err) })
	con.Settings.Flags(root)
	root.Flags().Bool("version", false, "print the version")
	addCommands(con, root)
	root.SetIn(con.Stdin)
	root.SetOut(con.Stdout)
	root.SetErr(con.Screen)
	completionCommand(con, root)
	helpCommand(root)
	return root
}

// commands returns the commands that the package cobra does not add, by their names.
func commands() map[string]func(*console.Console) *cobra.Command {
	version := thisVersion().Version
	all := map[string]func(*console.Console) *cobra.Command{
		"answer":    people.AnswerCommand,
		"artifacts": history.ArtifactsCommand,
		"audit":     verify.Command,
		"chat":      chat.Command,
		"check":     plan.CheckCommand,
		"explain":   explain.Command,
		"export":    export.Command,
		"gc":        history.GCCommand,
		"init":      initCommand,
		"journal":   history.JournalCommand,
		"mock":      mockCommand,
		"plan":      plan.Command,
		"questions": people.QuestionsCommand,
		"replay":    replay.Command,
		"resume":    run.ResumeCommand,
		"run":       func(con *console.Console) *cobra.Command { return run.Command(con, serve.Beside(con, version)) },
		"runs":      history.RunsCommand,
		"schema":    schemaCommand,
		"serve":     func(con *console.Console) *cobra.Command { return serve.Command(con, version) },
		"show":      history.ShowCommand,
		"submit":    submit.Command,
		"task":      run.TaskCommand,
		"tools":     tools.Command,
		"trust":     trustCommand,
		"version":   versionCommand,
	}
	maps.Copy(all, steering.Commands)
	return all
}

// addCommands adds the command that the arguments begin with, or else all: help, completions and
// corrections need all, and their flags cost more than many a command.
func addCommands(con *console.Console, root *cobra.Command) {
	all := commands()
	if len(con.Args) > 0 && all[con.Args[0]] != nil {
		root.AddCommand(all[con.Args[0]](con))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		root.AddCommand(all[name](con))
	}
}

// helpCommand adds the command help, which refuses words that are no command.
func helpCommand(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	cmd := find(root, "help")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		if err != nil || len(rest) == 0 || !about.HasSubCommands() {
			return err
		}
		return about.Args(about, rest)
	}
}

// find returns a command that was added before.
func find(root *cobra.Command, name string) *cobra.Command {
	cmd, _, err := root.Find([]string{name})
	if err != nil {
		panic(err)
	}
	return cmd
}

// completionCommand adds the command completion, which refuses unknown shells.
func completionCommand(con *console.Console, root *cobra.Command) {
	root.InitDefaultCompletionCmd() // takes the output that root has now
	cmd := find(root, "completion")
	var shells []string
	for _, sub := range cmd.Commands() {
		shells = append(shells, sub.Name())
		generate := sub.RunE
		sub.RunE = func(cmd *cobra.Command, args []string) error { return exit.WriteError(generate(cmd, args)) }
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return exit.UnknownWord("shell", args[0], shells)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// prepare checks and applies the global flags before a command runs.
func prepare(con *console.Console, cmd *cobra.Command) error {
	if err := con.Settings.Resolve(cmd, con.LookupEnv); err != nil {
		return err
	}
	if err := flags.CheckEmpty(cmd); err != nil {
		return err
	}
	con.Log = con.NewLogger()
	return nil
}

// onlyCommands refuses arguments that are no command.
func onlyCommands(con *console.Console, cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := `; "runteam help" lists the commands`
	if args[0] == "compare" || args[0] == "diff" {
		hint = "; to compare two runs, write runteam replay RUN --diff OTHER"
	} else if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return exit.Usagef("unknown command %q%s", args[0], hint)
}

// flagError describes an error about a flag, with the nearest known flag.
func flagError(con *console.Console, cmd *cobra.Command, err error) error {
	if !cmd.HasParent() { // an unknown command matters more than its flags
		if word, ok := console.FirstWord(con.Args); ok {
			return onlyCommands(con, cmd, []string{word})
		}
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return invalidValue(bad.GetFlag(), bad.GetValue(), err)
	}
	missing, ok := err.(*pflag.NotExistError) //nolint:errorlint // as pflag returns it
	if ok && missing.GetSpecifiedShortnames() == "" {
		if near, ok := nearestFlag(cmd, missing.GetSpecifiedName()); ok {
			return exit.Usagef("%v; did you mean --%s?", err, near)
		}
	}
	return exit.Usagef("%v; see %q", err, cmd.CommandPath()+" --help")
}

// nearestFlag returns the flag of a command that an unknown name probably means.
func nearestFlag(cmd *cobra.Command, name string) (string, bool) {
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	if near, ok := naming.Nearest(name, known); ok {
		return near, true
	}
	return onlyLonger(name, known)
}

// onlyLonger returns the only known name that begins with a name, with or without a plural s.
func onlyLonger(name string, known []string) (string, bool) {
	name = strings.TrimSuffix(name, "s")
	longer := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return !strings.HasPrefix(k, name) })
	if len(name) < 3 || len(longer) != 1 {
		return "", false
	}
	return longer[0], true
}

// invalidValue returns the error for a value that a flag does not accept.
func invalidValue(f *pflag.Flag, value string, err error) error {
	switch f.Value.Type() {
	case "bool":
		return exit.Usagef("--%s %q: write true or false", f.Name, value)
	case "int":
		return exit.Usagef("--%s %q: write a whole number, such as %s", f.Name, value, examples[f.Name])
	case "duration":
		if n, err := strconv.Atoi(value); err == nil {
			return exit.Usagef("--%s %d: a time has a unit: write %ds or %dm", f.Name, n, n, n)
		}
		return exit.Usagef("--%s %q: write a time such as 90s or 5m", f.Name, value)
	}
	return exit.Usagef("%v", err)
}

// examples are valid values of the flags that take a number.
var examples = map[string]string{"max-concurrency": "5", "max-token-budget": "20000"}
