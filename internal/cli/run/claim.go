package run

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/listformat"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A Queue is the journal in which runs are submitted and claimed. It stays open when a run ends.
type Queue struct{ openJournal }

// QueueIn returns the queue in an open journal, whose place and keys the flags name.
func QueueIn(con *console.Console, flags *journals.Flags, j *journal.Journal, at journals.Location) (*Queue, error) {
	key, err := journals.JournalKey(con, flags.KeyFile)
	return &Queue{openJournal{journal: j, at: at, hasKey: key != nil, shared: true}}, err
}

// Journal returns the journal.
func (q *Queue) Journal() *journal.Journal { return q.journal }

// SpecName returns the name of a spec by which its runs are submitted and found.
func SpecName(d *specfile.Declared) string { return specName(d.Name, d.Path) }

// specName returns the name of a spec of a team, which may have no name, in a file.
func specName(team, path string) string {
	return cmp.Or(team, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
}

// Submit checks a run as Prepare does, without connecting to anything, and stores it for a worker. of says who submits it,
// and when it may begin.
func (l Launch) Submit(ctx context.Context, con *console.Console, j *journal.Journal, of journal.Submission) (run string, added bool, err error) {
	con = silent(con)
	spec := l.Spec
	spec.Inputs, spec.Params, spec.Goal, spec.Results = nil, nil, source.GoalFlag{}, l.Journal.Results(con)
	d, err := spec.Declare(ctx, con)
	if err != nil {
		return "", false, err
	}
	job, err := l.job()
	if err != nil {
		return "", false, err
	}
	file, err := job.loadSpec(ctx, con)
	if err != nil {
		return "", false, err
	}
	t, err := connect.BuildTeam(file, connect.Unconnected(con.LookupEnv))
	if err != nil {
		return "", false, located(file, err)
	}
	if file.Goal == nil {
		o := job.Options(file)
		if _, err := files.Await(ctx, func() (*engine.Plan, error) { return t.Plan(file.Tasks, &o) }); err != nil {
			return "", false, located(file, err)
		}
	}
	if of.Info, err = job.infoOf(con, file); err != nil {
		return "", false, err
	}
	if of.Info.Files, err = job.given(file); err != nil {
		return "", false, err
	}
	of.Info.Command, of.Info.Accepts = "run", l.Accepts
	of.Spec, of.Version, of.Label = SpecName(d), d.File.Fingerprint(), l.Accepts
	return j.Submit(ctx, of)
}

// given returns the texts that flags gave: those of inputs, the parameters and the goal. A worker has the rest.
func (j *Job) given(file *specfile.File) (all []journal.File, err error) {
	for i := range file.Run.Inputs {
		in := &file.Run.Inputs[i]
		at := slices.IndexFunc(j.Inputs, func(pair string) bool { return strings.HasPrefix(pair, in.Name+"=") })
		switch {
		case at < 0:
			continue
		case in.Folder != nil || in.Envelope != nil:
			return nil, exit.Usagef("--input %s: a worker gets texts, and no folder and no result of a run: give a file", in.Name)
		}
		path := journal.GivenInput + in.Name
		if listformat.Of(j.Inputs[at]) != "" {
			path += "=" + filepath.Ext(j.Inputs[at]) // which says how a list is written
		}
		all = append(all, journal.File{Path: path, Text: in.Text, Label: label.Internal.Join(in.Classification)})
	}
	return append(all, j.flagFiles(file)...), nil
}

// claim has the job work on a submitted run. Of what the queue has, only the texts of inputs, the parameters and the goal
// are used: who can write there chooses no file, no program and no endpoint.
func (l *Launch) claim(j *Job) error {
	stored := l.Claim.Stored
	m, err := ReadInvocation(&stored.Info)
	if err != nil {
		return err
	}
	l.Texts, l.endings = map[string]string{}, map[string]string{}
	for _, f := range stored.Info.Files {
		input, is := strings.CutPrefix(f.Path, journal.GivenInput)
		switch {
		case f.Missing != "":
			return exit.Errorf(exit.KindRuntime, "what was given with %s cannot be read: it is %s", f.Path, f.Missing)
		case is:
			name, _, _ := strings.Cut(input, "=")
			l.Texts[name], l.endings[name] = f.Text, strings.TrimPrefix(input, name)
		case f.Path == journal.GivenGoal:
			j.Goal = source.GoalFlag{Text: f.Text, Given: true, Literal: true}
		}
	}
	j.Params = m.params
	reason := ""
	if m.Request != nil {
		reason = m.Request.Reason
	}
	m.Request = &journals.Request{By: l.Claim.Queue.By, Reason: reason}
	j.resumed = &resumed{
		openJournal: l.Queue.openJournal, stored: stored, run: l.Claim.Run, invocation: m,
		answers: map[task.ID]bool{}, called: map[task.ID]bool{}, begun: map[task.ID]bool{},
	}
	return nil
}
