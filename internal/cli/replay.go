package cli

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
)

// replaying is what is to be done with a stored run, as flags ask for it.
type replaying struct {
	looking
	stage
	without       []string
	withoutInputs []string
	other         string // of --diff
	models        []string
	environment   environment
	verbose       bool
	unkept        bool // the run that is made is not kept
	reveal        bool
	progress      string
	events        eventing
	force         bool // replace a file of events that exists
}

func (a *app) replayCommand() *cobra.Command {
	r := &replaying{}
	cmd := &cobra.Command{
		Use:   "replay [RUN]",
		Short: "Repeat a run from the journal without a model, leave something out of it, or compare two runs",
		Long: `replay repeats a run of the journal: the newest, or the one whose id begins with
RUN. Each prompt is built anew, from the copies of the spec and the inputs that the
journal has, and must be the one that was sent, to the byte; then it gets the answer
that it got. No model is asked, no network used, nothing written. The result is
printed as "runteam run" does, and stderr says whether the prompts are equal.

With --without or --without-input the run is made again without that context. Where
a prompt is the same, the answer of the run is taken; where it is another one, the
agent is asked as the run asked it. What is printed says task by task what changed.

With --diff two stored runs are compared task by task, and nothing is run.

Exit status: 0 if the prompts, or with --diff the two runs, are equal; 1 if not.
With --without 0, or 1 if a task failed.`,
		Example: `  runteam replay                               the newest run
  runteam replay 0195c3a1 --without "Check the blacklist"
  runteam replay 0195c3a1 --without-input policy
  runteam replay 0195c3a1 --diff 0195d00f`,
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runReplay(cmd, r, args) },
	}
	r.flags(cmd, a)
	return cmd
}

// flags adds the flags of replay and their completion.
func (r *replaying) flags(cmd *cobra.Command, a *app) {
	f := cmd.Flags()
	f.StringArrayVar(&r.without, "without", nil, "make the run again without `TASK`, a title, key or id, as if nothing depended on it (repeatable)")
	f.StringArrayVar(&r.withoutInputs, "without-input", nil, "make the run again without the input `NAME` (repeatable)")
	f.StringVar(&r.other, "diff", "", "compare the run with `RUN2`, and run nothing")
	f.BoolVarP(&r.verbose, "verbose", "v", false, "with --without and --diff: show both texts of what changed")
	f.StringArrayVar(&r.models, "model", nil, "with --without: use this `MODEL`, as for run (default: as the run did)")
	r.environment.flags(cmd)
	f.BoolVar(&r.reveal, "reveal", false, "show what is secret too; on a terminal only")
	f.StringVar(&r.progress, "progress", "auto", "with --without: progress on stderr, as `MODE`: auto, live, plain or none")
	complete(cmd, "progress", progressModes)
	r.events.flags(cmd)
	f.Lookup("events").Usage = "with --without: " + f.Lookup("events").Usage
	f.BoolVar(&r.force, "force", false, "with --events: replace a file that exists")
	r.stage.flags(cmd)
	r.journaling.flags(cmd)
	f.BoolVar(&r.unkept, "no-journal", false, "with --without: keep no journal of the new run")
	complete(cmd, "without-input", nil)
	offers := newCompleter(a, &r.journaling)
	offers.arguments(cmd, false, false)
	offers.taskFlag(cmd, "without", true)
	completeBy(cmd, "diff", func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offers.runs(cmd, word), cobra.ShellCompDirectiveNoFileComp
	})
}

// runReplay repeats a run, repeats it with something left out, or compares it with another.
func (a *app) runReplay(cmd *cobra.Command, r *replaying, args []string) error {
	if err := r.arguments(args); err != nil {
		return err
	}
	if err := r.checkFlags(cmd, a); err != nil {
		return err
	}
	switch {
	case r.other != "":
		return a.compareRuns(cmd, r)
	case len(r.without)+len(r.withoutInputs) > 0:
		return a.replayWithout(cmd, r)
	}
	return a.replay(cmd, r)
}

// asks are the flags that say how agents are asked, which only --without does.
var asks = []string{"offline", "script", "model", "allow-env", "env-file", "progress", "no-journal", "events", "force"}

func (r *replaying) checkFlags(cmd *cobra.Command, a *app) error {
	changed := cmd.Flags().Changed
	leaves := changed("without") || changed("without-input")
	switch {
	case changed("diff") && r.other == "":
		return usageError("--diff is empty: write the id of a run")
	case changed("diff") && leaves:
		return usageError("--diff compares two runs as they are: leave --without out")
	case r.verbose && !changed("diff") && !leaves:
		return usageError("--verbose shows what changed with --without or --diff")
	case r.reveal && changed("diff"):
		return usageError("--diff shows runs as they were: leave --reveal out")
	case r.reveal && !a.isTerminal(a.stdout):
		return usageError("--reveal shows what is secret on a terminal only, and standard output is none")
	case r.force && !changed("events"):
		return usageError("--force needs --events")
	case r.events.toStdout() && a.settings.json():
		return usageError("--events %s and the JSON result both need standard output: write the events to a file or to /dev/stderr", r.events.file.path)
	case slices.Contains(r.without, "") || slices.Contains(r.withoutInputs, ""):
		return usageError("--without is empty: name a task, or with --without-input an input")
	}
	for _, flag := range asks {
		if changed(flag) && !leaves {
			return usageError("--%s is for --without: a run is replayed, and runs are compared, without asking anybody", flag)
		}
	}
	if r.events.toStdout() && r.progress == "auto" && a.isTerminal(a.stdout) {
		r.progress = "plain" // a table would be drawn over the events
	}
	if err := r.stage.check(cmd); err != nil {
		return err
	}
	return a.checkProgress(r.progress)
}

// specOf reads the spec as the run had it, from the copies alone: what stands in
// the files by now does not count. The environment is that of the command; asked
// says whether it is needed, or a variable may be missing that is not set any more.
func (r *replaying) specOf(ctx context.Context, a *app, k *storedRun, asked bool) (*remembered, *specfile.File, error) {
	m, err := remember(&k.info)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(m.missing)) {
		return nil, nil, &fault{kind: kindRuntime, err: fmt.Errorf("run %s cannot be replayed: %s: %s", k.Run, path, m.missing[path])}
	}
	src, err := m.source()
	if err != nil {
		return nil, nil, err
	}
	src.storedOnly, src.results = true, r.journaling.results(a)
	src.models = append(src.models, r.models...)
	src.environment, src.noCalls = r.environment, !asked || m.Offline || r.offline
	file, err := src.load(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	if file.Offline != "" && !filepath.IsAbs(file.Offline) {
		file.Offline = filepath.Join(m.Folder, file.Offline)
	}
	file.Config.Logger = a.log
	return m, file, nil
}

// restoreModels gives the agents the names of the models that they had, which
// the environment may have brought.
func restoreModels(k *storedRun, file *specfile.File) {
	models := map[string]string{}
	for i := range k.history.Log {
		if x := k.history.Log[i].Exchange; x != nil {
			models[x.Agent] = x.Model
		}
	}
	for i := range file.Agents {
		if model, ok := models[file.Agents[i].Member.Name]; ok {
			file.Agents[i].Model, file.Agents[i].Member.Model = model, model
		}
	}
	if c := file.Coordinator; c != nil {
		if model, ok := models[handoff.Coordinator]; ok {
			c.Connection.Model, c.Coordinator.Model = model, model
		}
	}
}

// lasting are the exchanges of which the result of a run is made: of each task the
// last attempt, with its parts.
func (k *storedRun) lasting() []*record.AgentCall {
	var out []*record.AgentCall
	for i := range k.tasks {
		if k.tasks[i].status == removed {
			continue
		}
		list := k.tasks[i].exchanges
		last := slices.IndexFunc(list, func(x *record.AgentCall) bool { return x.Part == "" })
		for n, x := range list {
			if x.Part == "" {
				last = n
			}
		}
		for n, x := range list {
			if x.Key != (record.Key{}) && (n == last || last >= 0 && x.Part != "" && x.Attempt == list[last].Attempt) {
				out = append(out, x)
			}
		}
	}
	return out
}

// endpointsOf returns the base URLs that the agents of a spec and its coordinator
// call, and those of their fallback, as far as they are known.
func endpointsOf(file *specfile.File, lookup func(string) (string, bool)) (own map[string]string, fallback map[string][]string) {
	own, fallback = map[string]string{}, map[string][]string{}
	add := func(name string, c specfile.Connection) {
		bases, err := endpointsOfAgent(specfile.Agent{Connection: c}, lookup)
		if err != nil {
			return
		}
		own[name] = storedURL(c, bases[0])
		for i, base := range bases[1:] {
			fallback[name] = append(fallback[name], storedURL(c.Fallback[i], base))
		}
	}
	for _, ag := range file.Agents {
		add(ag.Member.Name, ag.Connection)
	}
	if c := file.Coordinator; c != nil {
		add(handoff.Coordinator, c.Connection)
	}
	return own, fallback
}

// storedURL returns a base URL as a journal keeps it: the origin, on which a
// clearance depends, and the path as it is written.
func storedURL(c specfile.Connection, base string) string {
	written := c.URLAsWritten()
	if !strings.Contains(written, "${") {
		return base
	}
	u, err := url.Parse(base)
	if err != nil {
		return written
	}
	_, behind, _ := strings.Cut(written, "://")
	_, path, _ := strings.Cut(behind, "/")
	return strings.TrimSuffix(u.Scheme+"://"+u.Host+"/"+path, "/")
}

// leavesOut reports whether the run was one without some of its context.
func (v *invocation) leavesOut() bool { return len(v.Without)+len(v.WithoutInputs) > 0 }
