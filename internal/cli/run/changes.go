package run

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
)

// printMissingCopies reports the copies of files that cannot be read from the journal, when a run
// cannot be resumed because a file is missing.
func printMissingCopies(con *console.Console, again *resumed) {
	if again == nil {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(again.invocation.Missing)) {
		if !strings.HasPrefix(path, "--") {
			con.Say("resume:  the copy of %s in the journal cannot be read: %s", placeName(path), terminal.CleanLine(again.invocation.Missing[path]))
		}
	}
}

// placeName names the file that a text is from.
func placeName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return terminal.CleanLine(path)
}

// printChanges reports what has changed since the run that is resumed.
func (x *execution) printChanges() {
	con, file, again := x.con, x.file, x.job.resumed
	if again == nil || again.run != nil { // or it was claimed, and nobody watches
		return
	}
	for _, path := range file.Restored() {
		if isText(path) { // there never was a file
			continue
		}
		con.Say("resume:  %s no longer exists: the copy in the journal is used", placeName(path))
	}
	if was := again.stored.Info.Fingerprint; was != "" && again.journal.Masked(file.Fingerprint()) != was {
		text := "the spec has changed"
		if again.isChanged {
			text = "the flags or the spec have changed"
		}
		con.Say("resume:  %s: tasks whose prompt changed run again", text)
	}
	if why := x.job.ScriptChange(&again.invocation.Invocation, file); why != "" {
		text := "its answers are requested again"
		if unused := titlesOf(accepted(&again.stored.History)); len(unused) > 0 {
			text = fmt.Sprintf("earlier answers are not used; running again: %s", format.List(unused, 3))
			again.unused = fmt.Sprintf("%s not used, because %s", format.Plural(len(unused), "earlier answer"), why)
		}
		con.Say("resume:  %s: %s", why, text)
	}
	for _, name := range changedInputs(&again.stored.History, file) {
		con.Say("resume:  input %s has changed: tasks whose prompt changed run again", terminal.CleanLine(name))
	}
	for _, call := range accepted(&again.stored.History) {
		if call.Missing != "" {
			con.Say("resume:  the result of %s cannot be read, so it runs again: %s", terminal.CleanLine(call.Title), terminal.CleanLine(call.Missing))
		}
	}
}

// titlesOf returns the titles of the tasks or steps of exchanges.
func titlesOf(list []*record.AgentCall) (titles []string) {
	for _, x := range list {
		titles = append(titles, x.Title)
	}
	return titles
}

// changedInputs returns the names of the inputs whose text has changed.
func changedInputs(h *record.History, file *specfile.File) (names []string) {
	if len(h.Begins) == 0 {
		return nil
	}
	was := map[string]record.Key{}
	for _, in := range h.Begins[len(h.Begins)-1].Inputs {
		was[in.Name] = in.Key
	}
	for _, in := range file.Run.Inputs {
		key := record.Key(sha256.Sum256([]byte(in.Text)))
		if h.Mask != nil {
			key = h.Mask(key)
		}
		if old, known := was[in.Name]; known && old != key {
			names = append(names, in.Name)
		}
	}
	return names
}
