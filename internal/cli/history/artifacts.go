package history

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// artifactFlags are the arguments and flags of artifacts.
type artifactFlags struct {
	journals.ReadFlags
	save  string
	patch bool
	force bool
}

// ArtifactsCommand returns the command artifacts.
func ArtifactsCommand(con *console.Console) *cobra.Command {
	a := &artifactFlags{}
	cmd := &cobra.Command{
		Use:   "artifacts [RUN] [TASK]",
		Short: "List or save the results and output files of a run, or print them as a patch",
		Long: `artifacts lists what the tasks of a run made: their results, and the files that they
declare as outputFiles. RUN is the newest run unless given; with TASK, only that task.
--save writes them into a folder, --patch prints the changes of files as a patch for
git apply in the folder that was the input. What is above the clearance of the user of the run, or has expired, is
withheld.`,
		Example: `  runteam artifacts
  runteam artifacts 0195c3a1 Fix --save out
  runteam artifacts Fix --patch | git apply`,
		Args: a.Arguments(2, "a RUN and a TASK (quote a title of several words)"),
		RunE: func(cmd *cobra.Command, _ []string) error { return artifacts(con, cmd, a) },
	}
	a.AddTo(cmd)
	journals.NewCompleter(con, &a.Flags).Arguments(cmd, true, false)
	f := cmd.Flags()
	f.StringVar(&a.save, "save", "", "write the artifacts into `DIR`, in a folder for each task; with TASK, into DIR itself")
	f.BoolVar(&a.patch, "patch", false, "print the changes of files as a patch")
	f.BoolVar(&a.force, "force", false, "with --save, replace files that exist")
	return cmd
}

// An ArtifactDocument is a result or an output file, in JSON.
type ArtifactDocument struct {
	URI     string               `json:"uri"` // artifact://RUN/TASK/NAME
	Task    task.ID              `json:"task"`
	Title   string               `json:"title"`
	Name    string               `json:"name"`
	Type    string               `json:"type"` // result or file
	Bytes   int                  `json:"bytes"`
	SHA256  string               `json:"sha256,omitempty"`
	Label   label.Classification `json:"label"`
	Removed bool                 `json:"removed,omitempty"`
	Reason  string               `json:"withheld,omitempty"` // why it cannot be read

	folder string
	text   string
}

func artifacts(con *console.Console, cmd *cobra.Command, a *artifactFlags) error {
	switch {
	case a.patch && a.save != "":
		return exit.Usagef("--patch prints a patch and --save writes files: leave one of them out")
	case a.force && a.save == "":
		return exit.Usagef("--force is for --save: name a folder")
	}
	if a.patch && con.Settings.JSON() {
		return exit.Usagef("--patch prints a patch: leave -o json out")
	}
	j, found, err := a.OpenRun(cmd, con)
	if err != nil {
		return err
	}
	defer j.Close()
	k, err := journals.Load(cmd.Context(), con, j, found, a.Task)
	if err != nil {
		return err
	}
	var only task.ID
	if a.Task != "" {
		if only, err = k.FindTask(a.Task); err != nil {
			return err
		}
	}
	if a.patch {
		return printPatch(con, k, only)
	}
	list := Artifacts(k, only)
	if a.save != "" {
		return saveArtifacts(con, list, a)
	}
	return con.PrintResult(list, func(w io.Writer) { writeArtifacts(w, list) })
}

// Artifacts returns the results and output files of the tasks of a run, or of one task if only is
// not empty.
func Artifacts(k *journals.StoredRun, only task.ID) []ArtifactDocument {
	list := []ArtifactDocument{}
	folders := map[string]bool{}
	for _, t := range k.Tasks {
		x := t.Accepted()
		if x == nil || t.Step || only != "" && t.ID != only {
			continue
		}
		folder := ""
		if only == "" {
			folder = folderOf(t, folders)
		}
		add := func(kind, name, text string, level label.Classification) *ArtifactDocument {
			sum := sha256.Sum256([]byte(text))
			list = append(list, ArtifactDocument{
				URI: "artifact://" + k.Run + "/" + string(t.ID) + "/" + name, Task: t.ID, Title: t.Title, Name: name, Type: kind,
				Bytes: len(text), SHA256: hex.EncodeToString(sum[:]), Label: level, folder: folder, text: text,
			})
			return &list[len(list)-1]
		}
		r, name := k.Result(x), "result.md"
		text := r.Text
		if r.Structured != "" {
			name, text = "result.json", r.Structured
		}
		outputs, changed, err := outputFiles(k, t)
		for isTaken(changed, name) {
			name = "task-" + name
		}
		if d := add("result", name, text, r.Label); r.Hidden {
			d.withhold(r.Text)
		}
		switch {
		case outputs == nil:
		case err != nil:
			add("file", "files", "", outputs.Label).withhold(outputs.Text)
		default:
			for _, path := range changed.Paths() {
				text := changed[path]
				if text == nil {
					d := add("file", path, "", outputs.Label)
					d.Removed, d.SHA256 = true, ""
					continue
				}
				add("file", path, *text, outputs.Label)
			}
		}
	}
	return list
}

// isTaken reports whether an output file has a name, or is in a folder with that name.
func isTaken(files filetree.Tree, name string) bool {
	for path := range files {
		top, _, _ := strings.Cut(path, "/")
		if strings.EqualFold(top, name) {
			return true
		}
	}
	return false
}

// withhold takes out what may not be seen.
func (d *ArtifactDocument) withhold(reason string) {
	d.Reason, d.Bytes, d.SHA256, d.text = reason, 0, "", ""
}

// outputFiles returns the stored output files of a task; nil if it has none.
func outputFiles(k *journals.StoredRun, t *journals.StoredTask) (*journals.StoredResult, filetree.Tree, error) {
	x := t.Files()
	if x == nil {
		return nil, nil, nil
	}
	r := k.Result(x)
	if r.Hidden {
		return &r, nil, errors.New(r.Text)
	}
	tree, err := filetree.Parse(r.Text)
	return &r, tree, err
}

// folderOf returns the folder of a task among those that are saved.
func folderOf(t *journals.StoredTask, taken map[string]bool) string {
	name := cmp.Or(t.Key, files.Slug(t.Title))
	if fold := strings.ToLower(name); name == "" || taken[fold] {
		name = string(t.ID)
	}
	taken[strings.ToLower(name)] = true
	return name
}

// saveArtifacts writes artifacts into a folder. It writes nothing if a file exists, unless it
// may replace files.
func saveArtifacts(con *console.Console, list []ArtifactDocument, a *artifactFlags) error {
	if err := con.WorkDir.MkdirAll(a.save, 0o755); err != nil {
		return err
	}
	root, err := con.WorkDir.OpenRoot(a.save)
	if err != nil {
		return err
	}
	defer root.Close()
	if !a.force {
		for i := range list {
			d := &list[i]
			name := path.Join(d.folder, d.Name)
			if _, err := root.Lstat(name); d.Reason == "" && !d.Removed && !errors.Is(err, fs.ErrNotExist) {
				return exit.Usagef("%s exists: save into another folder, or add --force", path.Join(a.save, name))
			}
		}
	}
	saved := 0
	for i := range list {
		d := &list[i]
		if d.Reason != "" || d.Removed {
			continue
		}
		name := path.Join(d.folder, d.Name)
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(name, []byte(d.text), 0o644); err != nil {
			return err
		}
		saved++
	}
	fmt.Fprintf(con.Screen, "saved %s to %s\n", format.Plural(saved, "artifact"), terminal.CleanLine(a.save))
	return nil
}

// writeArtifacts writes a line for each artifact.
func writeArtifacts(w io.Writer, list []ArtifactDocument) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no task has completed")
		return
	}
	table := format.NewTable(w, "")
	for i := range list {
		d := &list[i]
		size := format.Bytes(d.Bytes)
		switch {
		case d.Reason != "":
			size = d.Reason
		case d.Removed:
			size = "removed"
		}
		table.Row(terminal.CleanLine(d.Title), terminal.CleanLine(d.Name), d.Label.String(), terminal.CleanLine(size))
	}
	table.Flush()
}
