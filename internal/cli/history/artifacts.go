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
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/runstate"
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
declare as outputFiles, with the versions that these replace. RUN is the newest run unless given; with TASK, only
that task.
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

	// Of a file: its place among the versions of its path that the user of the run may see, how many these are, and what
	// its task was given that it replaces: URIs of other versions, or an input that has the file.
	Version  int      `json:"version,omitempty"`
	Versions int      `json:"versions,omitempty"`
	Replaces []string `json:"replaces,omitempty"`
	Input    string   `json:"input,omitempty"`
	Way      string   `json:"way,omitempty"` // these in words

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
	k, err := journals.Load(cmd.Context(), con, j, found, "") // the versions of other tasks too
	if err != nil {
		return err
	}
	var only task.ID
	if a.Task != "" {
		t, err := k.FindTask(a.Task)
		if err != nil {
			return err
		}
		only = t.ID
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
	folders, all := map[string]bool{}, changesOf(k)
	versions := versionsOf(all)
	for _, t := range k.Tasks {
		x := k.State.Accepted(t)
		if x == nil || t.Step || only != "" && t.ID != only {
			continue
		}
		folder := ""
		if only == "" {
			folder = folderOf(k, t, folders)
		}
		add := func(kind, name, text string, level label.Classification) *ArtifactDocument {
			sum := sha256.Sum256([]byte(text))
			list = append(list, ArtifactDocument{
				URI: artifactURI(k, t, name), Task: t.ID, Title: t.Title, Name: name, Type: kind,
				Bytes: len(text), SHA256: hex.EncodeToString(sum[:]), Label: level, folder: folder, text: text,
			})
			return &list[len(list)-1]
		}
		r, name := k.Result(x), "result.md"
		text := r.Text
		if r.Structured != "" {
			name, text = "result.json", r.Structured
		}
		var outputs taskFiles // none
		if i := slices.IndexFunc(all, func(f taskFiles) bool { return f.task == t }); i >= 0 {
			outputs = all[i]
		}
		changed := outputs.changed
		for isTaken(changed, name) {
			name = "task-" + name
		}
		if d := add("result", name, text, r.Label); r.Hidden {
			d.withhold(r.Text)
		}
		if outputs.err != nil {
			add("file", "files", "", outputs.label).withhold(outputs.err.Error())
			continue
		}
		for _, path := range changed.Paths() {
			text := changed[path]
			d := add("file", path, *cmp.Or(text, new("")), outputs.label)
			if text == nil {
				d.Removed, d.SHA256 = true, ""
			}
			d.showVersion(k, versions[path])
		}
	}
	return list
}

// showVersion adds which of the versions of its path a file is.
func (d *ArtifactDocument) showVersion(k *journals.StoredRun, of []*fileVersion) {
	v := of[slices.IndexFunc(of, func(v *fileVersion) bool { return v.of.task.ID == d.Task })]
	d.Version, d.Versions, d.Input = v.number, len(of), v.input
	var way []string
	if d.Versions > 1 {
		way = append(way, fmt.Sprintf("version %d", d.Version))
	}
	if d.Input != "" {
		way = append(way, "replaces that of input "+d.Input)
	}
	for _, o := range v.replaces {
		d.Replaces = append(d.Replaces, artifactURI(k, o.of.task, d.Name))
		way = append(way, "replaces that of "+o.of.task.Title)
	}
	d.Way = strings.Join(way, ", ")
}

// artifactURI returns the URI of an artifact of a task.
func artifactURI(k *journals.StoredRun, t *runstate.Task, name string) string {
	return "artifact://" + k.Run + "/" + string(t.ID) + "/" + name
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
func outputFiles(k *journals.StoredRun, t *runstate.Task) (*journals.StoredResult, filetree.Tree, error) {
	x := t.OutputFiles()
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
func folderOf(k *journals.StoredRun, t *runstate.Task, taken map[string]bool) string {
	name := cmp.Or(k.Key(t.ID), files.Slug(t.Title))
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

// OutputFiles returns the output files among the artifacts of a run, or of one of its tasks.
func OutputFiles(k *journals.StoredRun, only task.ID) []ArtifactDocument {
	return slices.DeleteFunc(Artifacts(k, only), func(d ArtifactDocument) bool { return d.Type != "file" })
}

// WriteFiles writes a line for each output file, below a heading.
func WriteFiles(w io.Writer, files []ArtifactDocument) {
	if len(files) > 0 {
		fmt.Fprint(w, "\noutput files\n")
		writeArtifacts(w, files)
	}
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
		table.Row(terminal.CleanLine(d.Title), terminal.CleanLine(d.Name), d.Label.String(), terminal.CleanLine(size), terminal.CleanLine(d.Way))
	}
	table.Flush()
}
