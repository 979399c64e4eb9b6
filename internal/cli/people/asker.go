package people

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
)

// What is typed instead of an answer: laterWord leaves the question open, promptWord shows it as an agent would see it.
const (
	laterWord  = "/later"
	promptWord = "/prompt"
)

// An Asker asks people on the terminal, one question at a time. It shows what the user of the
// run may see. Make one with [NewAsker].
type Asker struct {
	con    *console.Console
	people map[string]bool // their names
	turn   chan struct{}   // capacity 1; who has sent to it asks
	begin  sync.Once
	lines  chan string   // what is typed; closed at the end of the input
	closed chan struct{} // no further question follows

	// ReadLine reads a line that is typed, for a command that reads standard input itself. Nil means
	// that the asker reads all of it.
	ReadLine func(ctx context.Context) (line string, err error)

	mu      sync.Mutex // guards the rest
	prompts map[string]*promptview.Shown
	next    record.Recorder
}

// CanAsk reports whether there is a person at the terminal.
func CanAsk(con *console.Console) bool {
	return con.IsTerminal(con.Stdin) && con.IsTerminal(con.Stderr)
}

// NewAsker returns an asker of these people.
func NewAsker(con *console.Console, people []string) *Asker {
	a := &Asker{con: con, people: map[string]bool{}, turn: make(chan struct{}, 1), lines: make(chan string), closed: make(chan struct{}), prompts: map[string]*promptview.Shown{}}
	for _, name := range people {
		a.people[name] = true
	}
	return a
}

// Recorder returns the recorder of a run's prompts: the asker, which passes them on to next, if
// that is not nil. A nil Asker returns next.
func (a *Asker) Recorder(next record.Recorder) record.Recorder {
	if a == nil {
		return next
	}
	a.next = next
	return a.record
}

func (a *Asker) record(ctx context.Context, r record.Prompt) error {
	if r.Prompt != nil && a.people[r.Prompt.Receipt.Agent] {
		a.mu.Lock()
		a.prompts[r.Prompt.Receipt.Session] = r.Prompt
		a.mu.Unlock()
	}
	if a.next == nil {
		return nil
	}
	return a.next(ctx, r)
}

// take returns the prompt of a session as the user may see it.
func (a *Asker) take(session string) *promptview.Shown {
	a.mu.Lock()
	defer a.mu.Unlock()
	shown := a.prompts[session]
	delete(a.prompts, session)
	return shown
}

// Ask asks a person, once no other question is on the terminal.
func (a *Asker) Ask(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	shown := a.take(p.Receipt().Session)
	if shown == nil {
		return agent.Reply{}, person.ErrLater
	}
	asks := p.Schema()
	isApproval := engine.IsApproval(p) || engine.IsPlanApproval(p) || engine.IsLoweringApproval(p)
	if isApproval && shown.Withholds() {
		asks = record.RefusalForm
	}
	f, err := newForm(asks)
	if err != nil {
		return agent.Reply{}, err
	}
	f.readFrom(a.con.WorkDir)
	if isApproval {
		f.omitReasonToApprove()
	}
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return agent.Reply{}, ctx.Err()
	}
	defer func() { <-a.turn }()
	w, resume := a.con.Screen.Pause()
	defer resume()
	d := &dialog{w: w, lines: a.lines, read: a.ReadLine, shown: shown}
	if d.read == nil {
		a.begin.Do(func() { go a.read() })
		d.read = d.next
		d.drain()
	}
	text, err := d.ask(ctx, p.Receipt().Agent, f)
	if err != nil {
		if fmt.Fprintln(w); errors.Is(context.Cause(ctx), engine.ErrAnswered) {
			fmt.Fprintf(w, "%v\n", engine.ErrAnswered)
		}
		return agent.Reply{}, err
	}
	return agent.Reply{Text: text}, nil
}

// read passes on the lines of standard input. It ends with the input or the process, since
// nothing ends a read from a terminal.
func (a *Asker) read() {
	defer close(a.lines)
	in := bufio.NewScanner(a.con.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		select {
		case a.lines <- strings.TrimSuffix(in.Text(), "\r"):
		case <-a.closed:
			return
		}
	}
}

// Close ends the asker after the run. A nil Asker needs no Close.
func (a *Asker) Close() {
	if a != nil {
		close(a.closed)
	}
}

// A dialog is one question on the terminal.
type dialog struct {
	shown *promptview.Shown
	w     io.Writer
	lines <-chan string
	read  func(context.Context) (string, error)
}

// drain drops what was typed before the question.
func (d *dialog) drain() {
	for {
		select {
		case _, more := <-d.lines:
			if !more {
				return
			}
		default:
			return
		}
	}
}

// line reads a line of the answer.
func (d *dialog) line(ctx context.Context, ask string) (string, error) {
	for {
		fmt.Fprint(d.w, ask)
		text, err := d.read(ctx)
		switch {
		case errors.Is(err, io.EOF) || err == nil && strings.TrimSpace(text) == laterWord:
			return "", person.ErrLater
		case err != nil || strings.TrimSpace(text) != promptWord:
			return text, err
		}
		writeQuoted(d.w, d.shown.AsText())
	}
}

// next returns the next line that the asker read.
func (d *dialog) next(ctx context.Context) (string, error) {
	select {
	case text, more := <-d.lines:
		if !more {
			return "", io.EOF
		}
		return text, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// ask shows the question and reads the answer.
func (d *dialog) ask(ctx context.Context, who string, f *form) (string, error) {
	asked := d.shown.Asks()
	fmt.Fprintf(d.w, "\n── a question for %s: %s ──\n", terminal.CleanLine(who), terminal.CleanLine(asked.Title))
	writeAsked(d.w, &asked)
	fmt.Fprintf(d.w, "──\n%s leaves the question open, %s shows it as an agent would see it.\n", laterWord, promptWord)
	switch {
	case len(f.fields) > 0:
		return d.askFields(ctx, f)
	case f.schema == nil:
		return d.askText(ctx, f)
	}
	for {
		text, err := d.line(ctx, f.value.hint()+": ")
		if err != nil {
			return "", err
		}
		answer, err := f.text(text)
		if err == nil {
			return answer, nil
		}
		fmt.Fprintf(d.w, "%s\n", terminal.Clean(err.Error()))
	}
}

// askText reads a text of several lines.
func (d *dialog) askText(ctx context.Context, f *form) (string, error) {
	fmt.Fprintln(d.w, "Write the answer, and end it with a line that has only a period.")
	var text []string
	for {
		line, err := d.line(ctx, "> ")
		if err != nil {
			return "", err
		}
		if line != "." {
			text = append(text, line)
			continue
		}
		answer, err := f.text(strings.Join(text, "\n"))
		if err == nil {
			return answer, nil
		}
		text = nil
		fmt.Fprintf(d.w, "%v\n", err)
	}
}

// askFields reads the fields of an object.
func (d *dialog) askFields(ctx context.Context, f *form) (string, error) {
	for {
		texts := map[string]string{}
		for i := range f.fields {
			one := &f.fields[i]
			if chosen := strings.TrimSpace(texts[f.fields[0].name]); one.only != "" && one.only != chosen || slices.Contains(one.unasked, chosen) {
				continue
			}
			text, given, err := d.askField(ctx, one)
			if err != nil {
				return "", err
			}
			if given {
				texts[one.name] = text
			}
		}
		answer, err := f.set(texts)
		if err == nil {
			return answer, nil
		}
		fmt.Fprintf(d.w, "%s\n", terminal.Clean(err.Error()))
	}
}

// askField reads one field until its value fits. An empty line omits a field that may be missing.
func (d *dialog) askField(ctx context.Context, f *field) (text string, given bool, err error) {
	label, required := f.name+" ("+f.hint(), f.required || f.only != ""
	if f.kind == kindJSON {
		label += ", or @FILE"
	}
	if !required {
		label += ", may be empty"
	}
	if label += ")"; f.about != "" {
		label = f.about + "\n" + label
	}
	for {
		text, err := d.line(ctx, terminal.Clean(label)+": ")
		switch {
		case err != nil:
			return "", false, err
		case text == "" && !required:
			return "", false, nil
		case text == "" && f.kind == kindText:
			fmt.Fprintf(d.w, "%s is required.\n", terminal.CleanLine(f.name))
			continue
		}
		if _, err = f.fitting(text); err == nil {
			return text, true, nil
		}
		fmt.Fprintf(d.w, "%s\n", terminal.Clean(err.Error()))
	}
}
