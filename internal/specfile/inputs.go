package specfile

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/listformat"
	"github.com/runteam/runteam/label"
)

// readInputs reads the named inputs of the main file and the files of the options.
func (r *reader) readInputs() {
	defer func() { r.subject = nil }()
	var names []string
	if n := r.places.main.spec.own("inputs"); n != nil {
		for _, in := range n.parts() {
			names = append(names, in.key)
			r.subject = func() string { return "input " + quote(in.key) + ": " }
			r.addInput(in)
		}
	}
	r.subject = nil
	for _, name := range sortedKeys(r.o.Inputs) {
		if !slices.Contains(names, name) {
			r.badOption("Inputs", ErrUnknown, nearHint(name, "declare it under inputs", names...), " %s: the spec has no such input", quote(name))
		}
	}
}

// addInput reads one input. Null means that the options bring it.
func (r *reader) addInput(n *node) {
	name, at := n.key, n.keyAt
	var f *fields
	switch n.is {
	case isNull:
		f = &fields{place: placesByName["input"], node: n}
	case isText:
		r.bad(n, "write {text: …} or {file: "+cut(withoutSecrets(firstLine(n.text)), 40)+"}", "a text where a mapping belongs")
		return
	default:
		if f = r.fields(n, "input", nil); f == nil {
			return
		}
	}
	in := engine.Input{Name: name, Origin: origin(n.src, at)}
	members{{"classification", &in.Classification}, {"ttlMs", &in.TTL}, {"maxContextBytes", &in.MaxContextBytes}, {"cut", &in.Cut}, {"format", &in.ListFormat}}.read(f.own)
	switch run, result, isResult := r.resultOfInput(name, f); {
	case isResult:
		in.Envelope, in.Text = r.earlierResult(name, run, result, f, n.src, at)
	case r.isFolder(&in, f):
	default:
		if n := f.own("exclude"); n != nil {
			r.bad(n, "leave it out, or write dir", "exclude: the input is not a folder")
		}
		in.Text = r.inputText(name, f, n.src, at)
	}
	r.file.Run.Inputs = append(r.file.Run.Inputs, in)
	place := inputPlaceOf{name: name, fields: f, src: n.src, key: at, isFolder: in.Folder != nil}
	switch {
	case in.Envelope != nil:
		place.run = in.Envelope.Header().Run
	case in.Folder == nil:
		place.file = r.fileOfInput(name, f)
	}
	r.places.inputs = append(r.places.inputs, place)
}

// readFormats sets the formats of inputs whose items tasks run for, or could run for if the
// coordinator plans them, by the extensions of their files.
func (r *reader) readFormats() {
	lists, c := map[string]bool{}, r.file.Coordinator
	planned := r.file.Goal != nil && c != nil && c.MayPlan.ForEach && c.MayGrant.Inputs
	for s := range AllTasks(r.file.Tasks) {
		if s.ForEach != nil {
			lists[s.ForEach.Input] = true
		}
	}
	for i := range r.file.Run.Inputs {
		in := &r.file.Run.Inputs[i]
		if !planned && !lists[in.Name] || in.ListFormat != "" || in.Folder != nil || in.Envelope != nil {
			continue
		}
		in.ListFormat = listformat.Of(r.places.inputs[i].file)
	}
}

// fileOfInput returns the file that has the text of an input, as it is named.
func (r *reader) fileOfInput(name string, f *fields) string {
	path, given := r.o.Inputs[name]
	switch {
	case given && path == "-":
		return "standard input"
	case given:
		return path
	}
	return text(f.own("file"))
}

// ResultPrefix begins a value of Options.Inputs that names the result of a task of an
// earlier run, as in run:RUN/TASK, and not a file.
const ResultPrefix = "run:"

// resultOfInput returns the run and the task whose result an input is, from the options or from
// its key from. ok is false if the input is a text.
func (r *reader) resultOfInput(name string, f *fields) (run, result string, ok bool) {
	if given, flag := r.o.Inputs[name]; flag {
		given, ok = strings.CutPrefix(given, ResultPrefix)
		run, result, _ = strings.Cut(given, "/")
		return run, result, ok
	}
	n := f.own("from")
	if n == nil {
		return "", "", false
	}
	f.refuse(r.report, []string{"file", "text"}, "from is set too", "keep one of them")
	from := r.part(n, "from", "from: ")
	if from == nil {
		return "", "", true
	}
	return text(from.own("run")), text(from.own("task")), true
}

// earlierResult returns the result of an earlier run and its text, or nil after reporting why
// there is none.
func (r *reader) earlierResult(name, run, result string, f *fields, src *source, at int) (*envelope.Envelope, string) {
	report := func(err error, hint, message string) {
		if given, flag := r.o.Inputs[name]; flag {
			r.badOption("Inputs", err, hint, " %s=%s: %s", name, quote(given), message)
			return
		}
		if n := f.own("from"); n != nil {
			src, at = n.src, n.at
		}
		r.badAtAs(src, at, err, hint, "from: %s", message)
	}
	switch {
	case run == "" || result == "":
		if _, flag := r.o.Inputs[name]; flag { // a missing key is reported already
			report(ErrInvalid, "write run:RUN/TASK, with the ID of a run and the title of a task", "it names no result")
		}
		return nil, ""
	case r.o.Result == nil:
		report(ErrInvalid, "give a text", "results of earlier runs are in a journal, and there is none")
		return nil, ""
	}
	e, err := r.o.Result(run, result)
	text := ""
	if err == nil {
		if _, flag := r.o.Inputs[name]; !flag && e.Header().Run != run { // the author of the file cannot have meant this run
			report(ErrInvalid, "write the whole ID: "+e.Header().Run, fmt.Sprintf("run: %s is only the beginning of the ID of a run", quote(run)))
			return nil, ""
		}
		text, _, err = gate.InputText(e, time.Time{}) // the team reports an expired result
	}
	if err != nil {
		hint := "give the input with " + r.o.inputOption(name) + ", or name another result"
		if r.o.StoredOnly { // no other input can be given
			hint = "resume the run, and give the input with " + r.o.inputOption(name)
		}
		report(err, hint, err.Error())
		return nil, ""
	}
	r.results = append(r.results, fmt.Sprintf("input %s %s %s", quote(name), e.Header().Run, e.Digest()))
	return e, text
}

// inputText returns the text of an input, from the options or from the file.
func (r *reader) inputText(name string, f *fields, src *source, at int) string {
	file, inline := f.own("file"), f.own("text")
	if path, given := r.o.Inputs[name]; given {
		text, err := r.readInput(name, path, level(f.own("classification")))
		if err != nil {
			r.found = append(r.found, finding{Problem: Problem{File: path, Message: fmt.Sprintf("%s %s: %v", r.o.called("Inputs"), name, err), Err: err}})
		}
		return text
	}
	switch {
	case file != nil && inline != nil:
		r.bad(inline, "keep one of them", "text: file is set too")
	case file != nil:
		if from := r.readFile(file, maxInput); from != nil {
			from.loaded.label = from.loaded.label.Join(level(f.own("classification")))
			return from.text
		}
	case inline != nil:
		if strings.TrimSpace(inline.text) == "" {
			r.bad(inline, "write one, or leave the key out and give it with "+r.o.inputOption(name), "text: it is empty")
		}
		if len(inline.text) > maxInput {
			r.bad(inline, "", "text: it is larger than %s", bytesize.Text(int(maxInput)))
		}
		r.raiseLabel(inline, level(f.own("classification")))
		return inline.text
	case f.node.get("file") == nil && f.node.get("text") == nil && !r.o.unbound:
		r.badAt(src, at, "give it with "+r.o.inputOption(name)+", or write {file: PATH}, {text: …} or {from: {run: …, task: …}}", "it has no text")
	}
	return ""
}

// readInput reads the file of an option, which may be anywhere, or a pipe such as
// /dev/fd/63; "-" is standard input. It uses the stored copy if the file is gone, or if the
// copy replaces it.
func (l *loader) readInput(name, path string, level label.Classification) (string, error) {
	if path == "" { // not the spec of the working directory
		return "", unreadable(fs.ErrNotExist)
	}
	c := l.storedCopy(path)
	text, copied, err := l.orCopy(path, path == "-" || c != nil && c.Instead, func() (string, error) { return l.readPath(path, maxInput) })
	if err != nil {
		return "", err
	}
	k := l.record(path, path, "input "+name, text, copied)
	k.label = k.label.Join(level)
	return text, nil
}

// inputOption is how the options bring the text of an input.
func (o *Options) inputOption(name string) string { return o.called("Inputs") + " " + name + "=FILE" }

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
