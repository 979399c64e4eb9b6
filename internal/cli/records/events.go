package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/event"
	"github.com/spf13/cobra"
)

// eventPatience is how long a slow reader of --events may delay the end of a run.
const eventPatience = 5 * time.Second

// EventFlags is the flag that names the file for the events of a run.
type EventFlags struct{ File files.Output }

// AddTo adds the flag to a command.
func (e *EventFlags) AddTo(cmd *cobra.Command) {
	e.File.Flag = "events"
	cmd.Flags().StringVar(&e.File.Path, "events", "", "write the events of the run to `FILE` as they happen, one JSON object per line; - is stdout")
}

// ToStdout reports whether the events replace the answer on stdout.
func (e *EventFlags) ToStdout() bool {
	return slices.Contains([]string{"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}, e.File.Path)
}

// Check refuses events and a JSON result that both need stdout. If a terminal shows the events, it
// sets auto progress to plain, since a table would be drawn over them.
func (e *EventFlags) Check(con *console.Console, progress *string) error {
	if !e.ToStdout() {
		return nil
	}
	if con.Settings.JSON() {
		return exit.Usagef("--events %s and the JSON result both need standard output: write the events to a file or to /dev/stderr", e.File.Path)
	}
	if *progress == "auto" && con.IsTerminal(con.Stdout) {
		*progress = "plain"
	}
	return nil
}

// Begin returns the writer of the events, or nil without --events. It refuses a file that could not
// be written; used are the other files of the command. A regular file appears with the first event.
func (e *EventFlags) Begin(cmd *cobra.Command, con *console.Console, force bool, used ...string) (*EventWriter, error) {
	if !cmd.Flags().Changed("events") {
		return nil, nil
	}
	w := &EventWriter{con: con, path: e.File.Path, patience: eventPatience}
	switch {
	case e.ToStdout():
		w.out = con.Stdout
		return w, nil
	case slices.Contains([]string{"/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"}, w.path):
		w.out = con.Screen // above the table, if there is one
		return w, nil
	}
	at, err := con.WorkDir.Stat(w.path)
	if err != nil || at.Mode().IsRegular() || at.IsDir() {
		e.File.Force = force
		w.out = &files.LazyOutput{Output: &e.File}
		return w, e.File.CheckWritable(con.WorkDir, used)
	}
	// Opening a named pipe waits for its reader, until the first signal.
	out, err := files.Await(cmd.Context(), func() (*os.File, error) { return con.WorkDir.OpenFile(w.path, os.O_WRONLY, 0) })
	if cmd.Context().Err() != nil {
		return nil, err
	}
	if err != nil {
		return nil, w.fail(err)
	}
	w.out = out
	return w, nil
}

// An EventWriter writes events from its own goroutine, each with one write, so that a slow reader
// does not delay the run. A nil *EventWriter writes nothing.
type EventWriter struct {
	con      *console.Console
	path     string // the value of the flag
	out      io.Writer
	patience time.Duration

	mu    sync.Mutex // guards what follows
	more  *sync.Cond
	queue []event.Event // the write of queue[0] may be in progress
	ended bool
	err   error         // why writing stopped
	done  chan struct{} // closed when the goroutine has ended; nil before the first event
}

// Subscribers returns the subscribers that write events.
func (w *EventWriter) Subscribers() []func(event.Event) {
	if w == nil {
		return nil
	}
	return []func(event.Event){w.take}
}

// take queues an event.
func (w *EventWriter) take(e event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.err != nil {
		return
	}
	if w.done == nil {
		w.done, w.more = make(chan struct{}), sync.NewCond(&w.mu)
		go w.run()
	}
	w.queue = append(w.queue, e)
	w.more.Signal()
}

// run writes events until the end of the run or the first error.
func (w *EventWriter) run() {
	defer close(w.done)
	for {
		w.mu.Lock()
		for len(w.queue) == 0 && !w.ended {
			w.more.Wait()
		}
		if len(w.queue) == 0 {
			w.mu.Unlock()
			return
		}
		e := w.queue[0]
		w.mu.Unlock()
		err := w.write(e)
		w.mu.Lock()
		if len(w.queue) == 0 { // drain gave up waiting
			w.mu.Unlock()
			return
		}
		w.queue = w.queue[1:]
		if err != nil {
			w.queue = nil
			w.err = fmt.Errorf("%w; the events from number %d on are missing", err, e.Seq)
		}
		w.mu.Unlock()
		if errors.Is(err, syscall.EPIPE) {
			w.warn("the reader closed the pipe; the run continues, and no more events are written")
		}
		if err != nil {
			return
		}
	}
}

// write writes one line, escaped like all JSON that the command prints.
func (w *EventWriter) write(e event.Event) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if _, err := (&terminal.JSONWriter{W: &line}).Write(text); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err = w.out.Write(line.Bytes())
	return exit.WithoutPath(err)
}

// Close waits for the queued events, within limits, and closes the file. It warns about a reader
// that closed the pipe or is too slow.
func (w *EventWriter) Close() error {
	if w == nil {
		return nil
	}
	missing := w.drain()
	var closed error
	switch out := w.out.(type) {
	case *files.LazyOutput:
		closed = out.Close()
	case *os.File:
		if out != w.con.Stdout {
			closed = exit.WithoutPath(out.Close())
		}
	}
	if missing > 0 {
		w.warn("the reader is too slow; the last " + format.Plural(missing, "event") + " are missing")
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(w.err, syscall.EPIPE):
		return nil
	case w.err != nil:
		return w.fail(w.err)
	case closed != nil:
		return w.fail(closed)
	}
	return nil
}

// drain ends the goroutine and returns how many events it did not write in time.
func (w *EventWriter) drain() (missing int) {
	w.mu.Lock()
	w.ended = true
	if w.done == nil {
		w.mu.Unlock()
		return 0
	}
	w.more.Signal()
	w.mu.Unlock()
	limit := time.NewTimer(w.patience)
	defer limit.Stop()
	select {
	case <-w.done:
	case <-limit.C:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	missing, w.queue = len(w.queue), nil
	return missing
}

func (w *EventWriter) fail(err error) error {
	return exit.FileError("--events "+w.path, err)
}

func (w *EventWriter) warn(text string) {
	if w.con.Settings.Level <= slog.LevelWarn {
		w.con.Say("runteam: warning: --events %s: %s", terminal.CleanLine(w.path), text)
	}
}
