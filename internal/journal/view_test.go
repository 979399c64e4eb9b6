package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
)

// A viewedRun is a run with what views select it by.
type viewedRun struct {
	id, starter, spec string
	label             label.Classification
}

// has reports whether the run is there for views.
func (r *viewedRun) has(views []journal.View) bool {
	return slices.ContainsFunc(views, func(v journal.View) bool {
		return r.label <= v.Accepts && (v.Starter == "" || v.Starter == r.starter) && (v.Specs == nil || r.spec != "" && slices.Contains(v.Specs, r.spec))
	})
}

var (
	viewedSpecs    = []string{"", "claims", "letters"}
	viewedStarters = []string{"", "ann@example.org", "bob@example.org"}
)

// viewedRuns stores runs of all labels, specs and starters, the newest first. Every fifth does not say its label.
func viewedRuns(t *testing.T, j *journal.Journal) (all []viewedRun) {
	for _, level := range []label.Classification{label.Public, label.Internal, label.Confidential, label.Secret} {
		for _, spec := range viewedSpecs {
			for _, starter := range viewedStarters {
				r := viewedRun{fmt.Sprintf("run-%02d", len(all)), starter, spec, level}
				run, err := j.Begin(t.Context(), journal.Info{Run: r.id, Name: "team", Starter: starter, Spec: spec})
				require.NoError(t, err)
				begin := newFakeRun(r.id, 1).beginning(1)
				if begin.Begin.Label = &r.label; len(all)%5 == 0 {
					r.label, begin.Begin.Label, begin.Begin.Accepts = label.Confidential, nil, nil
				}
				asks := &record.Question{Session: r.id + "/t/1", Task: "t", Title: "T", Agent: "editor", Attempt: 1, Time: time.Now(), Key: answerKey(len(all))}
				require.NoError(t, appendEntries(run, begin, record.Entry{Question: asks}))
				endRun(t, run)
				all = append(all, r)
			}
		}
	}
	slices.Reverse(all)
	return all
}

// randomViews returns up to three views.
func randomViews(rng *rand.Rand) (views []journal.View) {
	for range rng.IntN(4) {
		v := journal.View{Accepts: label.Classification(rng.IntN(4)), Starter: viewedStarters[rng.IntN(3)]}
		if rng.IntN(2) == 0 {
			v.Specs = []string{}
			for range rng.IntN(3) {
				v.Specs = append(v.Specs, viewedSpecs[rng.IntN(3)])
			}
		}
		views = append(views, v)
	}
	return views
}

// byName are the methods of a journal that read or change a run by its name.
var byName = map[string]func(ctx context.Context, j *journal.Journal, run string) error{
	"Answer": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.Answer(ctx, run, "t", func(*runstate.Question) (record.Answer, error) { return record.Answer{By: "ann", Text: "yes"}, nil })
		return err
	},
	"AnswerQuestion": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.AnswerQuestion(ctx, run, "q", journal.PersonAnswer{By: "ann", Text: "yes"})
		return err
	},
	"CheckAnswerer": func(ctx context.Context, j *journal.Journal, run string) error {
		return j.CheckAnswerer(ctx, run, "q", journal.PersonAnswer{By: "ann"})
	},
	"Decisions": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.Decisions(ctx, run)
		return err
	},
	"Find": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.Find(ctx, run)
		return err
	},
	"Follow": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.Follow(ctx, run)
		return err
	},
	"Label": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.Label(ctx, run)
		return err
	},
	"LastRow": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.LastRow(ctx, run)
		return err
	},
	"Lines": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := journaltest.Text(j.Lines(ctx, run))
		return err
	},
	"Load": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.Load(ctx, run)
		return err
	},
	"LoadRun": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.LoadRun(ctx, run)
		return err
	},
	"LoadSession": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.LoadSession(ctx, run)
		return err
	},
	"LoadStart": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.LoadStart(ctx, run)
		return err
	},
	"LoadTask": func(ctx context.Context, j *journal.Journal, run string) error {
		_, _, err := j.LoadTask(ctx, run, "t")
		return err
	},
	"OpenQuestions": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.OpenQuestions(ctx, run)
		return err
	},
	"OpenRun": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.OpenRun(ctx, record.Opening{Run: run, Resume: true})
		return err
	},
	"Questions": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.Questions(ctx, run)
		return err
	},
	"Requeue": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.Requeue(ctx, run)
		return err
	},
	"Result": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.Result(ctx, run, "t")
		return err
	},
	"Resume": func(ctx context.Context, j *journal.Journal, run string) error {
		_, _, err := j.Resume(ctx, run)
		return err
	},
	"Search": func(ctx context.Context, j *journal.Journal, run string) error {
		_, _, err := j.Search(ctx, run, "t")
		return err
	},
	"Steer": func(ctx context.Context, j *journal.Journal, run string) error {
		return j.Steer(ctx, run, steer.Command{Kind: steer.Pause, By: "ann"})
	},
	"Tail": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.Tail(ctx, run)
		return err
	},
	"Trace": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.Trace(ctx, run)
		return err
	},
	"TraceTask": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.TraceTask(ctx, run, "t")
		return err
	},
	"Verify": func(ctx context.Context, j *journal.Journal, run string) error {
		_, err := j.Verify(ctx, run, audit.VerifyOptions{})
		return err
	},
}

// notByName are the other methods: those that list runs, add one, or work on the journal as a whole.
var notByName = strings.Fields("Newest Runs Begin Submit For Close Path Private Masked Signature Await Claim UpdateLimits CopyTo Remove Refuse")

// A run that no view has is absent from every method, with the error of a run that does not exist, and the errors about others
// do not name it.
func TestRunIsThereIfAViewHasIt(t *testing.T) {
	for method := range reflect.TypeFor[*journal.Journal]().Methods() {
		name := method.Name
		_, named := byName[name]
		require.True(t, named != slices.Contains(notByName, name), "%s: does it read or change a run by its name?", name)
	}
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		all := viewedRuns(t, j)
		rng := rand.New(rand.NewPCG(1, 2))
		for range 12 {
			views := randomViews(rng)
			var there, absent []string
			for i := range all {
				if all[i].has(views) {
					there = append(there, all[i].id)
				} else {
					absent = append(absent, all[i].id)
				}
			}
			part := j.For(views...)
			requireListed(t, part, there)
			requireUnnamed(t, part, "run-", there)
			for _, id := range there[:min(1, len(there))] {
				for name, call := range byName {
					if slices.Contains([]string{"Resume", "OpenRun"}, name) { // of a run that is left open, there is one less to resume
						continue
					}
					require.NotErrorIs(t, call(t.Context(), part, id), journal.ErrUnknownRun, "%s of run %s for %+v", name, id, views)
				}
			}
			for _, id := range absent[:min(2, len(absent))] {
				for name, call := range byName {
					err := call(t.Context(), part, id)
					require.ErrorIs(t, err, journal.ErrUnknownRun, "%s of run %s for %+v", name, id, views)
					unknown, _ := errors.AsType[*journal.UnknownRunError](err)
					require.NotNil(t, unknown, name)
					require.Contains(t, append(there, ""), unknown.Newest, name)
				}
			}
		}
	})
}

// requireListed fails unless a journal lists these runs.
func requireListed(t *testing.T, j *journal.Journal, there []string) {
	t.Helper()
	ids := func(list []journal.Summary, err error) (ids []string) {
		require.NoError(t, err)
		for _, s := range list {
			ids = append(ids, s.Run)
		}
		return ids
	}
	require.Equal(t, there, ids(j.Runs(t.Context())))
	require.Equal(t, there[:min(3, len(there))], append([]string(nil), ids(j.Newest(t.Context(), "", 3))...))
	asked, err := j.OpenQuestions(t.Context(), "")
	require.NoError(t, err)
	for i := range asked {
		require.Contains(t, there, asked[i].Run)
	}
}

// requireUnnamed fails if an error about runs with a prefix names another one than these.
func requireUnnamed(t *testing.T, j *journal.Journal, prefix string, there []string) {
	t.Helper()
	_, err := j.Find(t.Context(), prefix)
	if ambiguous, ok := errors.AsType[*journal.AmbiguousRunError](err); ok {
		require.Equal(t, there, ambiguous.Runs)
		return
	}
	require.LessOrEqual(t, len(there), 1)
}

// A run keeps who started it and the name of its spec when it is resumed with another Info, and in a copy.
func TestStarterAndSpecOfARunStay(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		require := require.New(t)
		r, err := j.Begin(t.Context(), journal.Info{Run: "r1", Starter: "ann@example.org", Spec: "claims"})
		require.NoError(err)
		require.NoError(r.Update(t.Context(), journal.Info{Fingerprint: "new", Starter: "bob@example.org", Spec: "letters"}))
		endRun(t, r)
		s := submission("r2")
		s.Info.Starter, s.Info.Spec = "ann@example.org", "letters"
		submit(t, j, s)
		other := filepath.Join(t.TempDir(), "copy.db")
		_, err = j.CopyTo(t.Context(), journal.InFile(other, journal.Options{Key: queueKey}), func(int64, int64) {})
		require.NoError(err)
		copied, err := journal.Open(other, journal.Options{Key: queueKey})
		require.NoError(err)
		defer copied.Close() //nolint:errcheck // it ends with the test
		for _, j := range []*journal.Journal{j, copied} {
			for _, id := range []string{"r1", "r2"} {
				is, err := j.Find(t.Context(), id)
				require.NoError(err)
				stored, err := j.LoadStart(t.Context(), id)
				require.NoError(err)
				require.Equal([]string{"ann@example.org", "claims"}, []string{is.Starter, is.Spec}, id)
				require.Equal([]string{"ann@example.org", "claims"}, []string{stored.Info.Starter, stored.Info.Spec}, id)
			}
		}
		claim(t, j)
	})
}

// Of a session, the turns are there that a view has.
func TestTurnsOfASessionAreThereIfAViewHasThem(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		for i, starter := range []string{"ann", "bob", "ann"} {
			info := journal.Info{Run: fmt.Sprint("t", i+1), Starter: starter}
			info.SetTurn(&record.SessionTurn{Session: "t1", Turn: i + 1, Agent: "clerk", Text: "Hello."})
			r, err := j.Begin(t.Context(), info)
			require.NoError(t, err)
			endRun(t, r)
		}
		repeats := journal.Info{Run: "again", Starter: "eve"}
		repeats.SetTurn(&record.SessionTurn{Session: "t1", Turn: 1, Agent: "clerk", Text: "Hello.", Repeats: true})
		r, err := j.Begin(t.Context(), repeats)
		require.NoError(t, err)
		endRun(t, r)
		of := func(starter string) *journal.Journal {
			return j.For(journal.View{Accepts: label.Secret, Starter: starter})
		}
		turns, err := of("ann").LoadSession(t.Context(), "t3")
		require.NoError(t, err)
		require.Equal(t, []string{"t1", "t3"}, []string{turns[0].Run, turns[1].Run})
		require.Len(t, turns, 2)
		_, err = of("eve").LoadSession(t.Context(), "again")
		require.ErrorIs(t, err, journal.ErrNoSession)
	})
}

// The events of a run end for a viewer when a process raises its label above what the viewer may see, before the first
// that this process writes. Its answers are not taken by runs of the viewer either.
func TestARunIsNotThereAnyMoreOnceItsLabelIsRaised(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		part := j.For(journal.View{Accepts: label.Internal})
		fake := newFakeRun("r1", 1)
		begins := func(level label.Classification) record.Entry {
			e := fake.beginning(30)
			e.Begin.Label = &level
			return e
		}
		r, err := part.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		before, after := fake.Complete(0, 100)
		require.NoError(t, appendEntries(r, append([]record.Entry{begins(label.Internal)}, append(before, after...)...)...))
		endRun(t, r)
		reuses, err := part.Begin(t.Context(), journal.Info{Run: "r2"})
		require.NoError(t, err)
		answers, err := cachedAnswers(t.Context(), reuses, answerKey(0))
		require.NoError(t, err)
		require.Len(t, answers, 1)
		tail, err := part.Tail(t.Context(), "r1")
		require.NoError(t, err)
		events, _, err := tail.Next(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, events)

		r, _, err = j.Resume(t.Context(), "r1")
		require.NoError(t, err)
		require.NoError(t, appendEntries(r, begins(label.Confidential)))
		endRun(t, r)
		_, _, err = tail.Next(t.Context())
		require.ErrorIs(t, err, journal.ErrUnknownRun)
		answers, err = cachedAnswers(t.Context(), reuses, answerKey(0))
		require.NoError(t, err)
		require.Empty(t, answers)
		endRun(t, reuses)
	})
}

// What works on all runs is refused where some are not there.
func TestPartOfAJournalIsNotTakenForAll(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close() //nolint:errcheck // it ends with the test
	part := j.For(journal.View{Accepts: label.Confidential}, journal.View{Accepts: label.Secret, Specs: []string{"claims"}})
	_, _, removed := part.Remove(t.Context(), time.Now())
	_, claimed := part.Claim(t.Context(), claims())
	_, copied := part.CopyTo(t.Context(), nil, nil)
	for _, err := range []error{removed, claimed, copied} {
		require.ErrorContains(t, err, "this works on all runs, and some are not there")
	}
	_, _, err := j.For(journal.View{Accepts: label.Public}, journal.View{Accepts: label.Secret}).Remove(t.Context(), time.Now())
	require.NoError(t, err, "one view has all of them")
}

// A starter or spec that was altered where runs are listed is found.
func TestVerifyComparesStarterAndSpec(t *testing.T) {
	t.Parallel()
	for _, column := range []string{"starter", "spec"} {
		path := filepath.Join(t.TempDir(), "runs.db")
		j, err := openAt(path, journal.Options{})
		require.NoError(t, err)
		defer j.Close() //nolint:errcheck // it ends with the test
		r, err := j.Begin(t.Context(), journal.Info{Run: "r1", Starter: "ann", Spec: "claims"})
		require.NoError(t, err)
		head := endRun(t, r)
		requireVerified(t, j, "r1", nil, head)
		edit(t, path, "update runs set "+column+" = 'bob'")
		report, err := j.Verify(t.Context(), "r1", audit.VerifyOptions{})
		require.NoError(t, err)
		require.Equal(t, audit.Broken, report.Status)
		require.Contains(t, report.Why, "the starter or the spec by which the run is listed")
	}
}
