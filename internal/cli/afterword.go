package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/runteam/runteam/team"
)

// tellKept says of a run that is in a journal what it did not ask for again,
// where it is, and how to go on with it.
func (a *app) tellKept(j *job, res finished) {
	if res.told == nil {
		return
	}
	if j.progress != "none" {
		a.say("%s", strings.Join(afterword(j, &res), "\n"))
	}
	if res.lost {
		a.warnKeyless()
	}
	if res.Unkept != nil {
		a.say("runteam: the run is not kept to its end: %s", clean(res.Unkept.Error()))
		a.say("         what is done is printed, and what had not begun was skipped; the journal has the run as far as it came")
	}
}

// warnKeyless says of what cannot be read from the journal again.
func (a *app) warnKeyless() {
	if a.settings.level <= slog.LevelWarn {
		a.say("runteam: warning: the journal stores only digests of what is above confidential, so a resumed run makes it again; to store it encrypted, give --journal-key FILE or %s", envJournalKey)
	}
}

// afterword are the lines for people.
func afterword(j *job, res *finished) (lines []string) {
	if j.again != nil {
		lines = append(lines, "resumed: "+res.told.before(res.Result))
	}
	if saved := savingsOf(res.Result).String(); saved != "" {
		lines = append(lines, "reused:  "+saved)
	}
	run := res.told.shortID(res.RunID)
	text := fmt.Sprintf("run:     %s; to look at it: %s", run, j.journal.command("show", run))
	if !res.Success() || res.Unkept != nil {
		text += "; to go on with it: " + j.journal.command("resume", run)
	}
	return append(lines, text)
}

// shortID returns the beginning of the ID of the run if no other run of the
// journal begins so, else the whole ID.
func (c *chronicle) shortID(run string) string {
	if same, err := c.journal.Newest(context.Background(), shortRun(run), 2); err != nil || len(same) != 1 {
		return run
	}
	return shortRun(run)
}

// before says what there was when the run was resumed.
func (c *chronicle) before(res *team.Result) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if res.Success() && c.calls == 0 {
		return "all of it was done before, and nobody was asked again"
	}
	text := fmt.Sprintf("%s done before", plural(c.kept, "task"))
	cut := 0
	for i := range res.Tasks {
		cut += res.Tasks[i].Metrics.Interrupted
	}
	for i := range res.Steps {
		cut += res.Steps[i].Metrics.Interrupted
	}
	if c.unused != "" {
		text += "; " + c.unused
	}
	if cut > 0 {
		text += fmt.Sprintf("; %s had been interrupted", plural(cut, "attempt"))
	}
	return text
}
