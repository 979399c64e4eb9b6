package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/label"
)

// collecting is what is to be removed, as flags ask for it.
type collecting struct {
	journaling
	age    string
	dryRun bool
}

func (a *app) gcCommand() *cobra.Command {
	c := &collecting{}
	cmd := &cobra.Command{
		Use:   "gc --older-than TIME",
		Short: "Remove old runs from the journal",
		Long: `gc removes the runs that began longer ago than TIME from the journal, however they
ended, and shrinks the file. A run that a process works on stays. Other runs can
write meanwhile, and gc works on a full disk too.`,
		Example: `  runteam gc --older-than 30d --dry-run        only list them
  runteam gc --older-than 720h`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("%s takes no argument", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.gc(cmd, c) },
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&c.age, "older-than", "", "remove what began longer ago than `TIME`: 30d, 720h (required)")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "list the runs, and remove none")
	complete(cmd, "older-than", nil)
	return cmd
}

// collected is what gc did, in JSON.
type collected struct {
	Runs   []string  `json:"runs"` // ids, the newest first
	Kept   []string  `json:"kept"` // old enough, and being worked on
	Before time.Time `json:"before"`
	Bytes  int64     `json:"bytes"` // that the journal is smaller by
	DryRun bool      `json:"dryRun,omitempty"`
}

func (a *app) gc(cmd *cobra.Command, c *collecting) error {
	if err := c.check(cmd); err != nil {
		return err
	}
	age, err := ageOf(c.age)
	if err != nil {
		return err
	}
	why := toRemove
	if c.dryRun {
		why = toRead
	}
	j, _, err := a.openJournal(&c.journaling, why)
	if err != nil {
		return err
	}
	defer j.Close()
	list, err := j.Runs(cmd.Context())
	if err != nil {
		return unloaded(whyEnded(cmd.Context(), err))
	}
	out := collected{Runs: []string{}, Kept: []string{}, Before: a.now().Add(-age), DryRun: c.dryRun}
	var old []journal.Summary
	for _, s := range list {
		switch {
		case !s.Started.Before(out.Before):
		case s.Holder != nil:
			out.Kept = append(out.Kept, s.Run)
			a.say("runteam: run %s stays: %s works on it", cleanLine(s.Run), cleanLine(s.Holder.String()))
		default:
			out.Runs, old = append(out.Runs, s.Run), append(old, s)
		}
	}
	if !c.dryRun {
		if err := a.remove(cmd, j, &out); err != nil {
			return err
		}
	}
	if a.settings.json() {
		return satisfied(a.printJSON(out))
	}
	return satisfied(a.printText(out.text(old, shortIDs(list))))
}

// remove removes what is listed, and says if it was not what was listed that went.
func (a *app) remove(cmd *cobra.Command, j *journal.Journal, out *collected) (err error) {
	listed := len(out.Runs)
	gone, bytes, err := j.Remove(cmd.Context(), out.Before)
	if err != nil {
		if len(gone) > 0 {
			a.say("runteam: %s removed before it came to that: %s", plural(len(gone), "run"), cleanLine(strings.Join(gone, ", ")))
		}
		return unloaded(whyEnded(cmd.Context(), err))
	}
	if len(gone) != listed {
		a.say("runteam: %s removed, where %s were listed: another process changed the journal meanwhile", plural(len(gone), "run"), number(listed))
	}
	out.Runs, out.Bytes = append([]string{}, gone...), bytes
	return nil
}

func (c *collected) text(old []journal.Summary, short map[string]string) string {
	var b strings.Builder
	if c.DryRun {
		table := newRows(&b, "")
		for i := range old {
			s := &old[i]
			table.row(cleanLine(short[s.Run]), cleanLine(s.Name), cleanLine(s.Status), moment(s.Started), tasksOf(s))
		}
		table.flush()
		fmt.Fprintf(&b, "%s would be removed\n", plural(len(c.Runs), "run"))
		return b.String()
	}
	fmt.Fprintf(&b, "%s removed; the journal is %s smaller\n", plural(len(c.Runs), "run"), label.SizeText(int(c.Bytes)))
	return b.String()
}

// ageOf reads a time as Go writes it, or a number of days such as 30d.
func ageOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, usageError("--older-than is required: write a time such as 30d or 720h")
	}
	const day = 24 * time.Hour
	age, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		if n, err = strconv.Atoi(days); err == nil && int64(n) > int64(1<<63-1)/int64(day) {
			err = strconv.ErrRange
		}
		age = time.Duration(n) * day
	}
	if err != nil || age < 0 {
		return 0, usageError("--older-than %q: write a time such as 30d or 720h", text)
	}
	return age, nil
}
