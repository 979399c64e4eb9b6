package journals

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/task"
)

// Command returns a command about a run of the journal that works in the same folder: it has the
// flags for the journal, without passwords, and the keys.
func (g *Flags) Command(verb string, words ...string) string {
	var flags []string
	if at, err := ParseLocation("--journal", g.Named); err == nil && at.address != "" {
		flags = append(flags, "--journal", format.ShellWord(at.public))
	} else if err == nil && at.file != "" {
		flags = append(flags, "--journal", format.ShellPath(at.file))
	}
	runs := verb == "resume" || strings.HasPrefix(verb, "chat ")
	for _, flag := range []struct {
		name, path string
		of         bool // the command has the flag
	}{{"--journal-key", g.KeyFile, true}, {"--workspaces", g.Workspaces, runs}, {"--audit-key", g.AuditKey, verb == "resume"}} {
		if flag.path != "" && flag.of {
			flags = append(flags, flag.name, format.ShellPath(flag.path))
		}
	}
	if name, _, _ := strings.Cut(verb, " "); g.EncryptFrom != "" && slices.Contains([]string{"resume", "answer", "chat"}, name) {
		flags = append(flags, "--encrypt-from", g.EncryptFrom)
	}
	end := false // words that begin with a hyphen must follow --
	for i, word := range words {
		end = end || strings.HasPrefix(word, "-")
		words[i] = format.ShellWord(word)
	}
	text := []string{cmp.Or(g.Program, "runteam"), verb}
	if end {
		return strings.Join(append(append(append(text, flags...), "--"), words...), " ")
	}
	return strings.Join(append(append(text, words...), flags...), " ")
}

// ChatCommand returns the command that continues a session.
func (g *Flags) ChatCommand(session string) string {
	return g.Command("chat --resume=" + format.ShellWord(session))
}

// TaskName returns the title of a task as an argument of a command, or its ID if a terminal must not
// receive the title.
func TaskName(title string, id task.ID) string {
	if terminal.CleanLine(title) != title {
		return string(id)
	}
	return title
}

// NextStep says how to resume a run that did not succeed: with a command, or by the program that began
// it. Of a submitted run it says which worker takes it. It is empty for a run that is running or succeeded, and for an
// experiment that is not paused.
func (g *Flags) NextStep(s *journal.Summary, short string, o Outlook) string {
	switch {
	case s.Live() && s.Status == journal.Paused: // its process resumes it
		return g.Command("resume", short)
	case s.Status == string(engine.StatusOK) || s.Live() || s.Command == ExperimentCommand:
		return ""
	case s.Status == journal.Queued:
		_, version, _ := strings.Cut(s.Queue.Version, ":")
		text := "for a worker of " + s.Queue.Spec + ", version " + version[:min(8, len(version))]
		if s.Queue.Unserved {
			text += ", which no worker serves now"
		}
		if s.Queue.Due.After(s.Started.Add(time.Second)) {
			text += ", from " + format.Time(s.Queue.Due)
		}
		return terminal.CleanLine(text)
	case s.Status == journal.SetAside:
		return g.Command("resume", short)
	case o.Refused:
		return RefusedByPerson
	case s.Command == "":
		return StartedByProgram
	case s.Status == string(engine.StatusSuspended) && !o.Answered:
		return g.Command("questions", short)
	}
	return g.Command("resume", short)
}

// NotRunning describes a run that no process works on, and says how to continue it. next is empty if the
// run was an experiment.
func (g *Flags) NotRunning(ctx context.Context, j *journal.Journal, s *journal.Summary) (message, next string, err error) {
	short := ShortRun(s.Run)
	found, err := j.Find(ctx, s.Run) // says whether it is paused
	if err != nil {
		return "", "", ReadError(ctx, err)
	}
	s = &found
	outlook, err := FindOutlook(ctx, j, s)
	if err != nil {
		return "", "", ReadError(ctx, err)
	}
	if next = g.NextStep(s, short, outlook); next != "" && next != StartedByProgram && next != RefusedByPerson {
		next = "to continue: " + next
	}
	if s.Status == string(engine.StatusOK) && s.Command != "" && s.Command != ExperimentCommand {
		next = "to run a task again: " + g.Command("resume", short) + " --fresh TASK"
	}
	return fmt.Sprintf("run %s is not running (%s)", short, s.Status), next, nil
}

// StartedByProgram says why no command resumes a run.
const StartedByProgram = "begun by a Go program: only the program can resume it"
