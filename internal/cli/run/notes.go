package run

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/report"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
)

// printJournalNotes says of a run that is in a journal what it did not ask for again,
// where it is, and how to go on with it.
func printJournalNotes(con *console.Console, j *Job, res outcome) {
	if res.journal == nil {
		return
	}
	if j.Progress != "none" {
		con.Say("%s", strings.Join(journalNotes(j, &res), "\n"))
	}
	if res.digestOnly {
		warnNoKey(con)
	}
	if res.Unkept != nil {
		con.Say("runteam: the run is not kept to its end: %s", terminal.Clean(res.Unkept.Error()))
		con.Say("         what is done is printed, and what had not begun was skipped; the journal has the run as far as it came")
	}
}

// warnNoKey says of what cannot be read from the journal again.
func warnNoKey(con *console.Console) {
	if con.Settings.Level <= slog.LevelWarn {
		con.Say("runteam: warning: the journal stores only digests of what is above confidential, so a resumed run makes it again; to store it encrypted, give --journal-key FILE or %s", journals.EnvJournalKey)
	}
}

// journalNotes are the lines for people.
func journalNotes(j *Job, res *outcome) (lines []string) {
	if j.resumed != nil {
		lines = append(lines, "resumed: "+res.journal.describeResume(res.Result))
	}
	if saved := report.Savings(res.Result).String(); saved != "" {
		lines = append(lines, "reused:  "+saved)
	}
	run := res.journal.shortID(res.RunID)
	text := fmt.Sprintf("run:     %s; to look at it: %s", run, j.Journal.Command("show", run))
	if !res.Success() || res.Unkept != nil {
		text += "; to go on with it: " + j.Journal.Command("resume", run)
	}
	return append(lines, text)
}

// shortID returns the beginning of the ID of the run if no other run of the
// journal begins so, else the whole ID.
func (c *JournalWriter) shortID(run string) string {
	if same, err := c.journal.Newest(context.Background(), journals.ShortRun(run), 2); err != nil || len(same) != 1 {
		return run
	}
	return journals.ShortRun(run)
}

// describeResume says what there was when the run was resumed.
func (c *JournalWriter) describeResume(res *engine.Result) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if res.Success() && c.calls == 0 {
		return "all of it was done before, and nobody was asked again"
	}
	text := fmt.Sprintf("%s done before", format.Plural(c.earlier, "task"))
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
		text += fmt.Sprintf("; %s had been interrupted", format.Plural(cut, "attempt"))
	}
	return text
}
