package steering

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// policyCommand shows the policy of a run, or replaces it.
func policyCommand(con *console.Console) *cobra.Command {
	o := &policyFlags{}
	cmd := &cobra.Command{
		Use:   "policy RUN [FILE]",
		Short: "Show the policy of a run, or replace it while the run works",
		Long: `policy shows what the policy of a run means for each pair of agents, and by which rules.
Below are the policies that the run had before: since when, who sent the next one, and
what that changed. With a FILE it replaces the policy of a live run. FILE is a spec file, or a file with
only the key policy; - is standard input.

The new policy is checked as before a run, for all tasks that have not completed and
with the assertions of the run and of FILE. If anything is wrong, nothing changes.
Otherwise it applies from the next decision of the gate. A running task that may have
read what it denies begins again without using up a retry. A policy that could deliver
more than the previous one is refused, unless the run was started with
--allow-widening.
` + taken,
		Example: `  runteam policy 1f3c
  runteam policy 1f3c team.yaml --reason "letters must not see amounts"`,
		Args: func(cmd *cobra.Command, args []string) error { return o.arguments(cmd, args) },
		RunE: func(cmd *cobra.Command, _ []string) error { return o.perform(cmd.Context(), con) },
	}
	o.Flags.AddStoringTo(cmd)
	o.Sender.AddTo(cmd, "the policy")
	cmd.Flags().StringVar(&o.replaces, "replaces", "", "replace only the policy with this `DIGEST` (default: the current one)")
	flags.Complete(cmd, "replaces", nil)
	offers := journals.NewCompleter(con, &o.Flags)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return offers.Runs(cmd, word), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
	return cmd
}

// policyFlags are the arguments and flags of the command policy.
type policyFlags struct {
	journals.Flags
	Sender
	run, file string
	replaces  string
}

func (o *policyFlags) arguments(cmd *cobra.Command, args []string) error {
	if err := flags.AtMost(2, "a RUN and a FILE")(cmd, args); err != nil {
		return err
	}
	for i, arg := range args {
		if arg == "" {
			return exit.Usagef("an argument of %s is empty: it takes a RUN and a FILE", cmd.CommandPath())
		}
		*[]*string{&o.run, &o.file}[i] = arg
	}
	switch changed := cmd.Flags().Changed; {
	case o.run == "":
		return exit.Usagef("%s needs a RUN: write runteam policy RUN [FILE]", cmd.CommandPath())
	case o.file == "" && (changed("by") || changed("reason") || changed("replaces")):
		return exit.Usagef("--by, --reason and --replaces belong to a new policy: name its FILE")
	}
	return nil
}

// perform shows the policy, or replaces it.
func (o *policyFlags) perform(ctx context.Context, con *console.Console) error {
	if o.file == "" {
		j, _, err := journals.Open(con, &o.Flags, journals.ToRead)
		if err != nil {
			return err
		}
		defer j.Close() //nolint:errcheck // nothing was written
		return o.show(ctx, con, j)
	}
	con.Settings.Undone = "the policy was not replaced"
	loaded, err := files.Await(ctx, func() (policyFile, error) {
		f, p, err := specfile.LoadPolicy(con.WorkDir, o.file, con.Stdin, func() []string { return o.members(ctx, con) })
		c := steer.Command{Kind: steer.ReplacePolicy, Policy: p, Replaces: o.replaces}
		if err == nil {
			c.Assert = specfile.AssertionsOf(f)
		}
		return policyFile{f, c}, err
	})
	if err != nil {
		return err
	}
	j, found, err := openRunning(ctx, con, &o.Flags, o.run)
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // what was sent is durable already
	if o.replaces == "" {
		now, err := journal.PolicyOf(ctx, j, found.Run)
		if err != nil {
			return journals.ReadError(ctx, err)
		}
		loaded.command.Replaces = now.Digest
	}
	err = o.Sender.send(ctx, con, j, &o.Flags, found, loaded.command)
	if !errors.Is(err, steer.ErrUnchanged) {
		return loaded.explain(err)
	}
	doc := document{Run: found.Run, Command: steer.ReplacePolicy, By: o.Sender.name(con), Reason: o.reason, Time: con.Now(), Unchanged: true}
	return con.PrintResult(doc, func(w io.Writer) {
		fmt.Fprintf(w, "run %s: nothing changed, since %v\n", journals.ShortRun(found.Run), steer.ErrUnchanged)
	})
}

// members returns the names of the readers in the run, or nil if they cannot be read: then that is reported once
// the file is right.
func (o *policyFlags) members(ctx context.Context, con *console.Console) []string {
	j, found, err := openRunning(ctx, con, &o.Flags, o.run)
	if err != nil {
		return nil
	}
	defer j.Close() //nolint:errcheck // nothing was written
	now, err := journal.PolicyOf(ctx, j, found.Run)
	if err != nil {
		return nil
	}
	return now.Names()
}

// A policyFile is a file with a policy, and the command that sends it.
type policyFile struct {
	file    *specfile.File
	command steer.Command
}

// explain adds to the error of a run that refuses a policy the place in the file, and what to do.
func (f *policyFile) explain(err error) error {
	found, isList := errors.AsType[task.Problems](err)
	switch {
	case errors.Is(err, steer.ErrStale):
		return fmt.Errorf("%w; read it with runteam policy, change yours if needed, and send it again", err)
	case !isList:
		return err
	}
	for i := range found {
		found[i].Pointer = f.placed(&found[i])
		if errors.Is(err, steer.ErrWidens) {
			found[i].Hint = "narrow it, or start the run with --allow-widening"
		}
	}
	return &exit.Error{Kind: exit.KindRuntime, Err: fmt.Errorf("%w:\n%w", steer.ErrRefused, f.file.Locate(found))}
}

// placed returns the pointer of a problem in the file. That of an assertion of the run leads to the same one in
// the file, if it has it.
func (f *policyFile) placed(p *task.Problem) string {
	if own, is := strings.CutPrefix(p.Pointer, "/policy/assert/"); is {
		return "/assert/" + own
	}
	if !strings.HasPrefix(p.Pointer, "/assert/") {
		return p.Pointer
	}
	for i, text := range f.command.Assert {
		if p.Subject == fmt.Sprintf("assertion %q", text) {
			return naming.Pointer("assert", i)
		}
	}
	return ""
}
