package cli

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/spf13/cobra"
)

// starter holds the files that init writes.
//
//go:embed starter
var starter embed.FS

// shadowed are the names of specs that team.yaml would take precedence over.
var shadowed = []string{"team.yml", "team.json"}

func initCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a starter spec that runs offline; nothing is overwritten",
		Example: `  runteam init                                 into this folder
  runteam init minutes && runteam run minutes --offline`,
		Args: flags.AtMost(1, "one DIR"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return writeStarterTo(con, args[0])
			}
			return writeStarterTo(con, ".")
		},
	}
}

// writeStarterTo writes the starter files into a folder, which it creates if necessary.
func writeStarterTo(con *console.Console, dir string) error {
	if dir == "" || dir == "-" {
		return exit.Usagef("init %q: name a folder, such as . for this one", dir)
	}
	names, err := starterFiles()
	if err != nil {
		return err
	}
	if err := checkFree(con.WorkDir, dir, append(slices.Clone(names), shadowed...)); err != nil {
		return err
	}
	if err := con.WorkDir.MkdirAll(dir, 0o777); err != nil { // before the umask
		return unwritable(dir, err)
	}
	if err := writeStarter(con.WorkDir, dir, names); err != nil {
		return unwritable(dir, err)
	}
	return printInit(con, dir, names)
}

// unwritable returns the error for a folder in which no file can be created.
func unwritable(dir string, err error) error {
	where := dir
	if filepath.Clean(dir) == "." {
		where = "this folder"
	}
	return exit.Errorf(exit.KindIO, "%s: nothing can be written there: %w; name another folder", where, exit.WithoutPath(err))
}

// starterFiles returns the names of the starter files.
func starterFiles() ([]string, error) {
	entries, err := starter.ReadDir("starter")
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// checkFree returns an error that lists existing files which new ones would replace or shadow.
func checkFree(at workdir.Dir, dir string, names []string) error {
	if found, err := at.Stat(dir); err == nil && !found.IsDir() {
		return exit.Errorf(exit.KindIO, "%s is a file, not a folder", dir)
	}
	var taken []string
	for _, name := range names {
		_, err := at.Lstat(filepath.Join(dir, name))
		switch {
		case err == nil:
			taken = append(taken, filepath.Join(dir, name))
		case !errors.Is(err, fs.ErrNotExist):
			return unwritable(dir, err)
		}
	}
	if len(taken) > 0 {
		return exit.Errorf(exit.KindIO, "already exists: %s; nothing was written: name another folder", strings.Join(taken, ", "))
	}
	return nil
}

// writeStarter writes the files, all or none.
func writeStarter(at workdir.Dir, dir string, names []string) (err error) {
	var written []string
	defer func() {
		if err != nil {
			for _, file := range written {
				_ = at.Remove(file) // an incomplete set is useless
			}
		}
	}()
	for _, name := range names {
		data, err := starter.ReadFile(path.Join("starter", name))
		if err != nil {
			return err
		}
		file := filepath.Join(dir, name)
		f, err := at.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return err
		}
		written = append(written, file)
		_, err = f.Write(data)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// printInit prints the names of the files on stdout and the next commands on stderr.
func printInit(con *console.Console, dir string, names []string) error {
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	document := struct {
		Files []string `json:"files"`
	}{names}
	err := con.PrintResult(document, func(w io.Writer) { fmt.Fprintln(w, strings.Join(names, "\n")) })
	where := ""
	if filepath.Clean(dir) != "." {
		where = " " + format.ShellPath(dir)
	}
	con.Say("runteam: a team of three agents. Next:")
	con.Say("  runteam run%s --offline   runs it without a key; the answers come from script.yaml", where)
	con.Say("  runteam plan%s            shows who reads what", where)
	con.Say("  runteam run%s             runs it with the model of team.yaml and OPENAI_API_KEY", where)
	return err
}
