package steering

import (
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
	"github.com/spf13/cobra"
)

// Commands make the commands that send commands to runs, by their names.
var Commands = map[string]func(*console.Console) *cobra.Command{
	"pause": pauseCommand, "cancel": cancelCommand, "interrupt": interruptCommand, "message": messageCommand, "rerun": rerunCommand, "policy": policyCommand,
}

// taken says when a command has taken effect.
const taken = `
The process that works on the run takes the command within two seconds, and this
command waits up to five. If the process does not take it, or refuses it, nothing
changes, now or later, and the exit status is 3. The journal keeps who sent it, when
and why.`

func pauseCommand(con *console.Console) *cobra.Command {
	return newCommand(con, steer.Pause, &cobra.Command{
		Use:   "pause RUN",
		Short: "Pause a run: nothing new begins until it is resumed",
		Long: `pause lets no further task, turn or call of the coordinator of a run begin. What is
under way goes on to its end, and the time limit of the run keeps counting. runteam
resume RUN continues the run.
` + taken,
		Example: `  runteam pause 1f3c --reason "the price list is wrong"`,
	}, shape{needs: 1, words: "a RUN"})
}

func cancelCommand(con *console.Console) *cobra.Command {
	return newCommand(con, steer.Cancel, &cobra.Command{
		Use:   "cancel RUN [TASK]",
		Short: "Cancel a run, or one of its tasks",
		Long: `cancel ends a run with the status cancelled; runteam resume can continue it. With a
TASK (a title, the name of an item such as Mail[ann@x.org], a key or an ID) it ends this
task alone, and with it the tasks that cannot do without its result.
` + taken,
		Example: `  runteam cancel 1f3c
  runteam cancel 1f3c "Write the letter" --reason "not needed any more"`,
	}, shape{needs: 1, words: "a RUN and a TASK", task: true})
}

func interruptCommand(con *console.Console) *cobra.Command {
	return newCommand(con, steer.Interrupt, &cobra.Command{
		Use:   "interrupt RUN TASK [TEXT]",
		Short: "Interrupt what a task does, and tell it something",
		Long: `interrupt stops the call of a model or a tool that a TASK makes at this moment. The
task goes on with its next turn, in which TEXT comes first. No retry is used up. A call
of a tool that was stopped may have happened, and the agent is told so.
` + taken,
		Example: `  runteam interrupt 1f3c "Write the letter" "Write it in French."
  runteam interrupt 1f3c "Write the letter" --file notes.md`,
	}, shape{needs: 2, words: "a RUN, a TASK and a TEXT", task: true, text: true})
}

func messageCommand(con *console.Console) *cobra.Command {
	return newCommand(con, steer.Message, &cobra.Command{
		Use:   "message RUN AGENT TEXT",
		Short: "Send a message to an agent of a run",
		Long: `message sends TEXT to an AGENT as a message of the user. The next turn of a task of
the agent has it, if the gate lets it.
` + taken,
		Example: `  runteam message 1f3c writer "The customer is called Ann."
  runteam message 1f3c writer --file notes.md --classification confidential`,
	}, shape{needs: 2, words: "a RUN, an AGENT and a TEXT", agent: true, text: true})
}

func rerunCommand(con *console.Console) *cobra.Command {
	return newCommand(con, steer.Rerun, &cobra.Command{
		Use:   "rerun RUN TASK",
		Short: "Run a task that failed or was skipped again, while the run works",
		Long: `rerun runs a TASK again that has failed or was skipped, and with it the tasks that
ended because of it. runteam resume does that for a run that has ended.
` + taken,
		Example: `  runteam rerun 1f3c "Fetch the prices"`,
	}, shape{needs: 2, words: "a RUN and a TASK", task: true})
}

// A shape says which arguments a command has: a RUN, then a task or an agent, then a text.
type shape struct {
	needs       int    // how many it needs, without a text
	words       string // all of them
	task, agent bool
	text        bool
}

// newCommand completes the command that sends commands of a kind.
func newCommand(con *console.Console, kind steer.Kind, cmd *cobra.Command, of shape) *cobra.Command {
	o := &commandFlags{}
	cmd.Args = func(cmd *cobra.Command, args []string) error { return o.arguments(cmd, of, args) }
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.send(con, cmd, kind) }
	o.Flags.AddStoringTo(cmd)
	o.Sender.AddTo(cmd, "the command")
	f := cmd.Flags()
	if of.text {
		f.StringVar(&o.file, "file", "", "TEXT is in `FILE`; - is standard input")
		f.StringVar(&o.classification, "classification", "", "the `LABEL` of TEXT: "+format.List(label.Classifications(), 4)+" (default: internal)")
		flags.Complete(cmd, "classification", label.Classifications())
	}
	offers := journals.NewCompleter(con, &o.Flags)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return offers.Runs(cmd, word), cobra.ShellCompDirectiveNoFileComp
		case len(args) == 1 && of.task:
			return offers.Tasks(cmd, args[0], word), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// arguments takes the arguments of a command.
func (o *commandFlags) arguments(cmd *cobra.Command, of shape, args []string) error {
	second := &o.task
	if of.agent {
		second = &o.agent
	}
	into := []*string{&o.run}
	if of.task || of.agent {
		into = append(into, second)
	}
	if of.text {
		into = append(into, &o.text)
	}
	if err := flags.AtMost(len(into), of.words+" (quote a text of several words)")(cmd, args); err != nil {
		return err
	}
	for i, arg := range args {
		if arg == "" {
			return exit.Usagef("an argument of %s is empty: it takes %s", cmd.CommandPath(), of.words)
		}
		*into[i] = arg
	}
	hasFile := cmd.Flags().Changed("file")
	switch {
	case len(args) < of.needs:
		return exit.Usagef("%s needs %s: write %s", cmd.CommandPath(), of.words, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	case o.text != "" && hasFile:
		return exit.Usagef("TEXT and --file contradict each other: leave one of them out")
	case of.agent && o.text == "" && !hasFile:
		return exit.Usagef("%s needs a RUN, an AGENT and a TEXT, or --file: write %s", cmd.CommandPath(), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	case o.text != "" && strings.TrimSpace(o.text) == "":
		return exit.Usagef("TEXT is empty: write what the agent is to know")
	}
	return nil
}
