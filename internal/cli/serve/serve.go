// Package serve is the command serve, and the inspector beside a run of run --inspect: it has package
// inspector show and steer the runs of a journal, and starts runs of specs.
package serve

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/mcpserver"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/pricing"
	"github.com/runteam/runteam/label"
	"github.com/spf13/cobra"
)

// serveFlags are the arguments and flags of serve.
type serveFlags struct {
	journals.Flags
	connect.AnswerFlags
	settings source.SpecFlags // of all specs; the paths are not used
	limits   flags.Limits
	access   accessFlags
	specs    []string
	accepts  string
	readOnly bool
	mcp      bool

	allowWidening bool // of policies of specs

	takes      int     // how many submitted runs it works on at a time
	maxRunning int     // how many of one caller all workers work on at a time; 0 means any number
	maxCost    float64 // what those of one caller may cost on a day, in US dollars; 0 means any amount
	maxQueued  int     // how many of one caller may wait, of those that this server stores; 0 means any number

	drainTime time.Duration // for calls under way, once the server is to stop
	drain     chan struct{} // closed then
	hurry     func()        // called once calls under way are not waited for any more: the journal waits for its database no longer
}

// Command returns the command serve.
func Command(con *console.Console, version string) *cobra.Command {
	s := &serveFlags{drain: make(chan struct{})}
	cmd := &cobra.Command{
		Use:   "serve [SPEC…]",
		Short: "Show the runs of the journal in the browser, steer them, and start runs of specs",
		Long: `serve shows the runs of the journal in the browser, while they work and afterwards:
their tasks, prompts and receipts, and what was withheld. It steers runs that work, in
any process, answers questions, and starts runs of each SPEC. It prints a link that
lets one browser in, once; Enter prints another one, and so does SIGUSR1 if there is no
terminal. Programs use the API under /api/v1 with a token: from $` + inspector.EnvToken + `,
or the one that serve writes into --token-file.

With --roles it lets in the people of a file instead, and prints no link. They sign in
with a token of that file, or at a proxy that names them in the --identity-header.

The viewer is the user of the runs, or with --accepts someone with a lower clearance.
Nothing above confidential is shown. serve listens on this computer alone unless
--listen says otherwise, and encrypts with --tls-cert and --tls-key.

On SIGTERM it drains: no further call begins, calls under way finish within --drain
and are stored, and another server or runteam resume continues the runs. A second
signal interrupts these calls. Ctrl-C cancels the runs; runteam resume continues them.

With --mcp it serves no page: it speaks MCP (Model Context Protocol) on standard
input and output, and offers each SPEC as a tool. The arguments of the tool are the
inputs and parameters of the spec; each call is a run in the journal.`,
		Example: `  runteam serve                                the journal of this folder
  runteam serve claims.yaml --offline          and start runs of a spec
  runteam serve --read-only --accepts internal
  runteam serve --listen 127.0.0.1:0 --token-file token.txt
  runteam serve claims.yaml --roles roles.yaml people with tokens, each in their roles
  runteam serve --mcp claims.yaml              for an MCP client: its command and arguments`,
		Args: func(_ *cobra.Command, args []string) error {
			s.specs = args
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(con, cmd, s, version) },
	}
	s.Flags.AddStoringTo(cmd)
	s.Flags.AddWorkspacesTo(cmd)
	s.AnswerFlags.AddTo(cmd)
	s.settings.AddSettingsTo(cmd)
	s.limits.AddTo(cmd, "each run that it starts")
	f := cmd.Flags()
	f.BoolVar(&s.mcp, "mcp", false, "offer each SPEC as a tool to the MCP client that started the command, over standard input and output")
	s.access.AddTo(cmd)
	f.StringVar(&s.accepts, "accepts", label.Confidential.String(), "show at most this `LABEL`: public, internal or confidential")
	f.BoolVar(&s.allowWidening, "allow-widening", false, "let a client give a SPEC a policy that delivers more, for later runs")
	f.DurationVar(&s.drainTime, "drain", 30*time.Second, "on SIGTERM, let calls under way finish for up to `TIME`; 0s interrupts them at once")
	f.BoolVar(&s.readOnly, "read-only", false, "refuse everything that changes something")
	f.IntVar(&s.takes, "work", 0, "take submitted runs of each SPEC, at most `N` at a time")
	f.IntVar(&s.maxRunning, "max-running", 0, "take no run of a caller of whom `N` are worked on, by any worker")
	f.Float64Var(&s.maxCost, "max-cost-per-day", 0, "take no run of a caller whose runs have cost `USD` US dollars today, in UTC, by the prices in the specs")
	f.IntVar(&s.maxQueued, "max-queued", 0, "store no run of a caller of whom `N` wait for a worker")
	flags.Complete(cmd, "accepts", label.Classifications()[:3])
	flags.Complete(cmd, "drain", nil)
	return cmd
}

// serve serves until it is interrupted.
func serve(con *console.Console, cmd *cobra.Command, s *serveFlags, version string) error {
	if s.mcp {
		con.Settings.Output = "text" // errors are on stderr: stdout is for MCP alone
	}
	accepts, err := s.check(con, cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if s.mcp {
		return mcpserver.Serve(ctx, con, s.specs, s.launch(accepts), version, con.Stdin, con.Stdout)
	}
	con = s.unhurried(con)
	specs, err := s.declared(ctx, con)
	if err != nil {
		return err
	}
	token, err := s.programToken(con)
	if err != nil {
		return err
	}
	j, at, err := s.openJournal(con)
	if err != nil {
		return whereToBegin(con, err)
	}
	defer j.Close() //nolint:errcheck // what was sent is durable already
	d, err := s.access.open(ctx, con)
	if err != nil {
		return err
	}
	if s.access.tokenFile != "" { // only now: a server that cannot begin must not replace the token of another one
		locked, err := writeToken(con.WorkDir, s.access.tokenFile, token)
		if err != nil {
			return errors.Join(err, d.Close())
		}
		defer unlock(locked)
	}
	site := newSite(con, j, &s.Flags, accepts, version)
	site.readOnly = s.readOnly
	if len(specs) > 0 {
		site.starts = &starter{site: site, flags: s, specs: specs}
	}
	if s.takes > 0 {
		if site.starts.queue, err = run.QueueIn(con, &s.Flags, j, at); err != nil {
			return errors.Join(err, d.Close())
		}
	}
	in, err := s.access.letIn(con, site, d)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	if in.Tokens == nil {
		in.Tokens = inspector.OneToken(token, callerOf(j, token))
	}
	o := site.options()
	o.Access, o.ReadOnly, o.Drain = in, s.readOnly, s.drain
	return s.work(ctx, con, d, at, o, site.starts)
}

// openJournal opens the journal for what the server does.
func (s *serveFlags) openJournal(con *console.Console) (*journal.Journal, journals.Location, error) {
	s.Quiet = true // where it is is said once the server listens
	switch {
	case s.readOnly:
		return journals.Open(con, &s.Flags, journals.ToRead)
	case len(s.specs) > 0:
		return journals.Open(con, &s.Flags, journals.ToServe)
	}
	return journals.Open(con, &s.Flags, journals.ToChange)
}

// unhurried returns a console whose journals wait for their database until hurry is called, and not only until the first
// signal: what calls under way return is to be stored.
func (s *serveFlags) unhurried(con *console.Console) *console.Console {
	own, hurried := *con, make(chan struct{})
	own.Stopping, s.hurry = hurried, sync.OnceFunc(func() { close(hurried) })
	return &own
}

// programToken returns the token of programs, after a check of the file that will have it.
func (s *serveFlags) programToken(con *console.Console) (string, error) {
	path := s.access.tokenFile
	if path != "" {
		if err := checkToken(con.WorkDir, path); err != nil {
			return "", err
		}
	}
	return programToken(con, path != "")
}

// work serves on a listener, starts runs, and prints links, until ctx ends. After SIGTERM it does so until its runs are
// drained.
func (s *serveFlags) work(ctx context.Context, con *console.Console, d *doorway, journal journals.Location, o inspector.Options, starts *starter) error {
	s.announce(con, d, journal)
	var links *linkPrinter
	if s.access.rolesFile == "" {
		links, _ = printLinks(con, "open ", func() string { return linkOf(s.access.address(d), o.Access.Logins.NewKey()) })
		defer links.stop()
	}
	serving, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var all sync.WaitGroup
	if starts != nil {
		starts.begin(serving, &all)
	}
	if s.takes > 0 {
		w := &worker{starter: starts, most: s.takes, unread: map[string]bool{}}
		all.Go(func() { w.work(serving) })
	}
	all.Go(func() {
		select {
		case <-ctx.Done():
			if cause, ok := errors.AsType[*exit.Interrupted](context.Cause(ctx)); ok && cause.Signal == syscall.SIGTERM && starts != nil {
				starts.drain(serving)
			}
			s.hurry()
			stop(context.Cause(ctx))
		case <-serving.Done():
		}
	})
	if links != nil {
		all.Go(func() { links.onSignals(serving) })
		all.Go(func() { onEnter(serving, con, func() { links.print() }) })
	}
	err := inspector.Serve(serving, d.Listener, d.secure, inspector.New(o))
	stop(err)
	all.Wait() // the runs have been canceled or drained, and end
	return err // nil after an interrupt, the normal end
}

// announce prints the journal and the address, and a warning if others on the network can read the traffic.
func (s *serveFlags) announce(con *console.Console, d *doorway, journal journals.Location) {
	at, a := d.Addr(), &s.access
	con.Say("runteam: serving %s at %s%s", journal, a.address(d), a.listening(d))
	if d.secure == nil && a.socket == "" && !isLoopback(at) {
		con.Say("runteam: warning: --listen %s: others on the network can reach this server and read what it sends, since it does not encrypt: add --tls-cert and --tls-key", terminal.CleanLine(a.listen))
	}
	if isEvery(at) && a.publicURL == nil {
		con.Say("runteam: from another computer, open the link with an address of this one in place of 127.0.0.1")
	}
	if a.tokenFile != "" {
		con.Say("runteam: the token for programs is in %s", terminal.CleanLine(a.tokenFile))
	}
}

// isLoopback reports whether only this computer can reach an address.
func isLoopback(at net.Addr) bool {
	parsed, err := netip.ParseAddrPort(at.String())
	return err == nil && parsed.Addr().Unmap().IsLoopback()
}

// check refuses flags that cannot be used, and returns the clearance of the viewer.
func (s *serveFlags) check(con *console.Console, cmd *cobra.Command) (accepts label.Classification, err error) {
	if err := s.Flags.Check(cmd); err != nil {
		return 0, err
	}
	if err := s.AnswerFlags.Check(cmd); err != nil {
		return 0, err
	}
	if err := s.limits.Check(cmd); err != nil {
		return 0, err
	}
	for _, name := range append(accessNames, "allow-widening", "read-only", "drain", "work", "max-running", "max-cost-per-day", "max-queued") {
		if s.mcp && cmd.Flags().Changed(name) {
			return 0, exit.Usagef("--%s is for the page, and --mcp serves none: leave one of them out", name)
		}
	}
	switch {
	case cmd.Flags().Changed("work") && (s.takes < 1 || s.takes > maxWork):
		return 0, exit.Usagef("--work %d: write how many runs it works on at a time, 1 to %d", s.takes, maxWork)
	case s.takes > 0 && len(s.specs) == 0:
		return 0, exit.Usagef("--work takes runs of the specs that are served: name a SPEC")
	case cmd.Flags().Changed("max-running") && (s.takes == 0 || s.maxRunning < 1):
		return 0, exit.Usagef("--max-running %d: it bounds the runs of each caller that --work N takes: write 1 or more, with --work", s.maxRunning)
	case cmd.Flags().Changed("max-cost-per-day") && (s.takes == 0 || !(s.maxCost >= 0.000001 && s.maxCost <= pricing.Max)):
		return 0, exit.Usagef("--max-cost-per-day %v: it bounds what the runs of each caller cost that --work N takes: write a number of US dollars from 0.000001 to 1000000, with --work", s.maxCost)
	case cmd.Flags().Changed("max-queued") && (len(s.specs) == 0 || s.maxQueued < 1):
		return 0, exit.Usagef("--max-queued %d: it bounds the runs of a SPEC that each caller may have waiting: write 1 or more, with a SPEC", s.maxQueued)
	case s.drainTime < 0:
		return 0, exit.Usagef("--drain %v: write a time such as 90s or 5m, or 0s to interrupt calls at once", s.drainTime)
	}
	if err := s.access.check(con, cmd); err != nil {
		return 0, err
	}
	switch accepts, err = label.ParseClassification(s.accepts); {
	case err != nil:
		return 0, exit.UnknownWord("--accepts", s.accepts, label.Classifications()[:3])
	case accepts > label.Confidential:
		return 0, exit.Usagef("--accepts %s: what is secret is not shown in a browser: write public, internal or confidential", s.accepts)
	}
	if s.readOnly && len(s.specs) > 0 {
		return 0, exit.Usagef("--read-only starts no runs: leave out %s, or --read-only", s.specs[0])
	}
	if s.Offline && len(s.specs) == 0 && !s.mcp {
		return 0, exit.Usagef("--offline is for the runs of a SPEC: name one")
	}
	return accepts, nil
}
