package run

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// resultFile is the name of the JSON document of a run in a folder of results.
const resultFile = "result.json"

// saveFlag adds --save, to which --force applies.
func (j *Job) saveFlag(cmd *cobra.Command) {
	force := cmd.Flags().Lookup("force")
	force.Usage = strings.Replace(force.Usage, "--trace,", "--save, --trace,", 1)
	j.save.Flag = "save"
	cmd.Flags().StringVar(&j.save.Path, "save", "", "write the result of each completed task, and "+resultFile+", into the folder `DIR`")
	flags.CompleteBy(cmd, "save", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
}

// openFolder prepares the folder of --save. Which tasks a goal will have is not known yet.
func (x *execution) openFolder(cmd *cobra.Command) error {
	if f := cmd.Flags().Lookup("save"); f == nil || !f.Changed {
		return nil
	}
	names := []string{resultFile}
	for i := range x.file.Tasks {
		s := &x.file.Tasks[i]
		name := savedName(i, len(x.file.Tasks), s.Key, s.Title, task.NewID(s.Title))
		names = append(names, name+".md", name+".json")
	}
	folder := x.job.save
	folder.Force = x.job.record.Force
	if err := folder.Open(x.con.WorkDir, names); err != nil {
		folder.Close()
		return err
	}
	x.folder = &folder
	return nil
}

// savedName returns the name of the file for task i of several, without an extension.
func savedName(i, tasks int, key, title string, id task.ID) string {
	digits := max(2, len(fmt.Sprint(tasks)))
	return fmt.Sprintf("%0*d-%s", digits, i+1, cmp.Or(key, files.Slug(title), string(id)))
}

// A folderResult is what a run writes into a folder, as records of the run hold it.
type folderResult struct {
	con    *console.Console
	folder *files.Folder
	result *engine.Result

	saved    int
	withheld []string // titles, with the reason
}

// save writes the results of the run into the folder of --save. What the user may not see, or has
// expired, is withheld.
func (x *execution) save() error {
	if x.folder == nil {
		return nil
	}
	s := folderResult{con: x.con, folder: x.folder, result: x.result.Recorded()}
	if err := s.write(); err != nil {
		err = fmt.Errorf("--save %s: %w; %s written", x.folder.Path, err, format.Plural(s.saved, "file"))
		return &exit.Error{Kind: exit.KindIO, Err: err, Status: exit.StatusNoRun}
	}
	if x.job.Progress != "none" || len(s.withheld) > 0 {
		x.con.Say("%s", s.summary())
	}
	return nil
}

func (s *folderResult) write() error {
	for i := range s.result.Tasks {
		t := &s.result.Tasks[i]
		if t.Status != task.Completed {
			continue
		}
		if reason := withheldReason(t); reason != "" {
			s.withheld = append(s.withheld, fmt.Sprintf("%s (%s)", terminal.CleanLine(t.ShownName()), reason))
			continue
		}
		text, ext := t.Result, ".md"
		if t.Structured != "" {
			text, ext = t.Structured, ".json"
		}
		if err := s.writeFile(savedName(i, len(s.result.Tasks), t.Key, t.ShownName(), t.ID)+ext, []byte(text)); err != nil {
			return err
		}
	}
	var document bytes.Buffer
	if err := s.con.WriteDocument(&document, func(w io.Writer) error { return s.result.WriteJSON(w) }); err != nil {
		return err
	}
	return s.writeFile(resultFile, document.Bytes())
}

func (s *folderResult) writeFile(name string, data []byte) error {
	err := s.folder.WriteFile(name, data)
	if err == nil {
		s.saved++
	}
	return err
}

// summary says what was written where.
func (s *folderResult) summary() string {
	text := fmt.Sprintf("saved %s to %s", format.Plural(s.saved, "file"), terminal.CleanLine(s.folder.Path))
	if len(s.withheld) > 0 {
		text += "; withheld: " + strings.Join(s.withheld, ", ")
	}
	return text
}

// withheldReason returns why the user may not read a result, such as secret, or "".
func withheldReason(t *engine.TaskResult) string {
	reason, ok := strings.CutPrefix(t.Result, "[withheld: ")
	if !ok || t.Structured != "" || t.Envelope != nil && t.Envelope.Size() == len(t.Result) {
		return "" // an agent may write these words
	}
	return strings.TrimSuffix(reason, "]")
}
