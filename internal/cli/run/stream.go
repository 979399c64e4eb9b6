package run

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/task"
)

// An answerStream prints the answer on stdout while it is written.
type answerStream struct {
	con    *console.Console
	shared bool    // stderr leads to the same place as stdout
	task   task.ID // that writes the answer; empty for the coordinator

	mu      sync.Mutex // guards the rest
	printed strings.Builder
	held    string // line feeds, which are not printed at the end of the answer
	err     error  // of stdout; nothing is printed after it
}

// checkStream refuses --stream beside what else needs stdout. If a terminal shows the answer, it sets
// auto progress to plain, since a table would be drawn over it.
func (j *Job) checkStream(con *console.Console) error {
	switch {
	case !j.stream:
		return nil
	case con.Settings.JSON():
		return exit.Usagef("--stream prints the answer as text: leave out -o json, or --stream")
	case j.events.ToStdout():
		return exit.Usagef("--stream and --events %s both need standard output: write the events to a file or to /dev/stderr", j.events.File.Path)
	}
	if j.Progress == "auto" && con.IsTerminal(con.Stdout) {
		j.Progress = "plain"
	}
	return nil
}

// openStream prepares --stream, and refuses it if several tasks form the answer.
func (x *execution) openStream() error {
	if !x.job.stream {
		return nil
	}
	s := &answerStream{con: x.con, shared: x.con.SharesOutput()}
	if x.plan != nil && x.file.Run.Answer == nil {
		if n := len(x.plan.Output); n != 1 {
			return exit.Usagef("--stream needs one task that writes the answer, and this run has %d: name it with output, or leave out --stream", n)
		}
		s.task = x.plan.Output[0]
	}
	x.stream = s
	return nil
}

// streamTo returns what takes what models write: the progress, the answer on stdout, and what accompanies
// the run; nil if nobody watches.
func (x *execution) streamTo(progress func(event.Delta)) func(event.Delta) {
	var all []func(event.Delta)
	if progress != nil {
		all = append(all, progress)
	}
	if x.stream != nil {
		all = append(all, x.stream.take)
	}
	if x.attendant != nil && x.attendant.Stream != nil {
		all = append(all, x.attendant.Stream)
	}
	if len(all) == 0 {
		return nil
	}
	return func(d event.Delta) {
		for _, take := range all {
			take(d)
		}
	}
}

// take prints a piece of the answer. What was printed cannot be taken back: an answer that begins
// again follows what was printed.
func (s *answerStream) take(d event.Delta) {
	if isAnswer := d.Agent == handoff.Coordinator && d.Title == string(engine.StepSynthesis); s.task == "" && !isAnswer || s.task != "" && d.Task != s.task {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.Reset {
		s.again()
	}
	s.print(terminal.Clean(d.Text))
}

// again ends what was printed of an answer that begins again.
func (s *answerStream) again() {
	if s.printed.Len() == 0 {
		return
	}
	s.endLine()
	s.printed.Reset()
	s.held = ""
	s.con.Say("runteam: the answer begins again")
}

// print prints what follows of the answer, but for line feeds at its end.
func (s *answerStream) print(text string) {
	text = s.held + text
	kept := strings.TrimRight(text, "\n")
	if s.held = text[len(kept):]; kept == "" {
		return
	}
	if s.printed.Len() == 0 && s.con.IsTerminal(s.con.Stdout) && s.con.IsTerminal(s.con.Stderr) {
		s.con.Say("")
	}
	s.write(kept)
	_, _ = s.printed.WriteString(kept)
}

func (s *answerStream) write(text string) {
	switch {
	case s.err != nil:
	case s.shared:
		s.err = s.con.Screen.WriteBeside(s.con.Stdout, text)
	default:
		_, s.err = io.WriteString(s.con.Stdout, text)
	}
}

// endLine ends the line of what was printed. Where progress is printed too, a line of it may have done so.
func (s *answerStream) endLine() {
	switch {
	case s.err != nil:
	case s.shared:
		s.err = s.con.Screen.EndBeside(s.con.Stdout)
	default:
		s.write("\n")
	}
}

// end prints the rest of the answer, and an end of line. A result without an answer, as of a run that
// failed, follows what was printed.
func (s *answerStream) end(answer string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer = strings.TrimRight(terminal.Clean(answer), "\n")
	rest, continues := strings.CutPrefix(answer, s.printed.String())
	if s.held = ""; !continues {
		s.again()
		rest = answer
	}
	s.print(rest)
	if s.printed.Len() > 0 {
		s.endLine()
		if s.con.IsTerminal(s.con.Stdout) && s.con.IsTerminal(s.con.Stderr) {
			s.con.Say("")
		}
	}
	if s.err != nil {
		return exit.WriteError(fmt.Errorf("the answer: %w", s.err))
	}
	return nil
}
