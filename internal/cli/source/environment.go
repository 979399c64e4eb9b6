package source

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/joho/godotenv"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/connection"
	"github.com/runteam/runteam/internal/workdir"
)

// EnvAllow names the environment variable that holds values for --allow-env, separated by spaces or
// commas.
const EnvAllow = "RUNTEAM_ALLOW_ENV"

// EnvironmentFlags say which variables of the environment a spec may send where.
type EnvironmentFlags struct {
	allow []string
	File  string // of --env-file
}

// AddTo adds the flags to a command.
func (e *EnvironmentFlags) AddTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&e.allow, "allow-env", nil, "let the spec send a variable of the environment to an endpoint, as `NAME=ORIGIN` (repeatable; also $"+EnvAllow+")")
	flags.Complete(cmd, "allow-env", nil)
	e.AddFileFlagTo(cmd)
}

// AddFileFlagTo adds --env-file to a command.
func (e *EnvironmentFlags) AddFileFlagTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&e.File, "env-file", "", "take variables of the environment from `FILE`, in .env form")
}

// allowed returns what the flags and the environment allow.
func (e *EnvironmentFlags) allowed(lookup func(string) (string, bool)) ([]specfile.EnvUse, error) {
	var all []specfile.EnvUse
	add := func(from, text string) error {
		use, err := specfile.ParseEnvUse(text)
		if err != nil {
			return exit.Usagef("%s: %w", from, err)
		}
		all = append(all, use)
		return nil
	}
	for _, text := range e.allow {
		if err := add("--allow-env", text); err != nil {
			return nil, err
		}
	}
	ambient, _ := lookup(EnvAllow)
	for _, text := range strings.FieldsFunc(ambient, func(r rune) bool { return strings.ContainsRune(" \t\r\n,", r) }) {
		if err := add(EnvAllow, text); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// MaxEnvFile bounds a file of --env-file, in bytes.
const MaxEnvFile = 64 << 10

// lookup returns the environment: the variables of --env-file, then those of the process.
func (e *EnvironmentFlags) lookup(con *console.Console) (func(string) (string, bool), error) {
	if e.File == "" {
		return con.LookupEnv, nil
	}
	vars, err := readEnvFile(con.WorkDir, e.File)
	if err != nil {
		return nil, err
	}
	process := con.LookupEnv
	return func(name string) (string, bool) {
		if value, ok := vars[name]; ok {
			return value, true
		}
		return process(name)
	}, nil
}

// readEnvFile reads a file of variables. Errors do not repeat its contents.
func readEnvFile(dir workdir.Dir, path string) (map[string]string, error) {
	bad := func(err error) error {
		return exit.FileError("--env-file "+path, err)
	}
	if err := files.CheckReadable(dir, path); err != nil {
		return nil, bad(err)
	}
	f, err := dir.Open(path)
	if err != nil {
		return nil, bad(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxEnvFile+1))
	switch {
	case err != nil:
		return nil, bad(err)
	case len(text) > MaxEnvFile:
		return nil, bad(fmt.Errorf("it is larger than %d KiB", MaxEnvFile>>10))
	}
	vars, err := godotenv.UnmarshalBytes(text)
	if err != nil {
		return nil, exit.Errorf(exit.KindValidation, "--env-file %s: it is not in .env form: write one NAME=VALUE on each line", path)
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if strings.HasPrefix(strings.ToUpper(name), "RUNTEAM_") {
			return nil, exit.Errorf(exit.KindValidation, "--env-file %s: %s configures runteam itself: set it in the environment of the process", path, name)
		}
	}
	return vars, nil
}

// addConsentHints says how to allow each variable that lacks consent.
func (s *SpecFlags) addConsentHints(err error) error {
	found, ok := errors.AsType[*specfile.Error](err)
	if !ok {
		return err
	}
	for i := range found.Problems {
		if refused, ok := errors.AsType[*specfile.EnvError](found.Problems[i].Err); ok {
			found.Problems[i].Hint = s.consentHint(refused.Use)
		}
	}
	return err
}

// consentHint says how to allow a variable to be sent to an endpoint.
func (s *SpecFlags) consentHint(use specfile.EnvUse) string {
	var trust strings.Builder
	trust.WriteString("runteam trust")
	for _, arg := range []struct{ flag, path string }{{"", s.Path}, {" --team", s.Team}, {" --orchestrator", s.Orchestrator}, {" --coordinator", s.Coordinator}, {" --env-file", s.Environment.File}} {
		if arg.path != "" {
			trust.WriteString(arg.flag + " " + format.ShellPath(arg.path))
		}
	}
	var hint string
	switch grant := use.Name + "=" + use.To; {
	case !strings.Contains(use.To, "${"):
		hint = "add --allow-env " + format.ShellPath(grant)
	case expandable.MatchString(use.To):
		hint = `add --allow-env "` + grant + `"`
	}
	switch {
	case s.Path == "-" || len(s.Stored) > 0:
		return hint
	case hint == "":
		return "run: " + trust.String()
	}
	return hint + ", or run: " + trust.String()
}

// expandable matches a text in which a shell, inside double quotes, only expands variables.
var expandable = regexp.MustCompile(`^([A-Za-z0-9._:/\[\]-]|\$\{[A-Za-z_][A-Za-z0-9_]*\})+$`)

// SentVariables returns which variables a run of the spec sends where: those that it names, and
// OPENAI_API_KEY for each connection without its own key.
func SentVariables(file *specfile.File, lookup func(string) (string, bool)) []specfile.EnvUse {
	all := slices.Clone(file.Env)
	addOne := func(c *specfile.Connection) {
		base, key, err := connection.Resolve(c.BaseURL, c.APIKey.Reveal(), lookup)
		if err != nil || key == "" || !c.APIKey.IsZero() {
			return
		}
		base, _, _ = strings.Cut(base, "?") // the query may hold the version of Azure's API
		use, err := specfile.ParseEnvUse("OPENAI_API_KEY=" + base)
		if err != nil {
			return
		}
		if use.Known = true; !slices.ContainsFunc(all, func(u specfile.EnvUse) bool { return u.Name == use.Name && u.To == use.To }) {
			all = append(all, use)
		}
	}
	add := func(c *specfile.Connection) {
		addOne(c)
		for i := range c.Fallback {
			addOne(&c.Fallback[i])
		}
	}
	for i := range file.Agents {
		if file.Agents[i].HasModel() {
			add(&file.Agents[i].Connection)
		}
	}
	if file.Coordinator != nil && (file.Goal != nil || file.Run.Answer != nil) {
		add(&file.Coordinator.Connection)
	}
	return all
}

// WriteVariables writes which variables are sent where.
func WriteVariables(w io.Writer, uses []specfile.EnvUse, indent string) {
	rows := format.NewTable(w, indent)
	for _, u := range uses {
		to := terminal.CleanLine(u.To)
		if u.To == "file" {
			to = "(path of a file)"
		}
		if program, is := strings.CutPrefix(to, "command:"); is {
			to = "the program " + program
		}
		rows.Row(u.Name, "to "+to)
	}
	rows.Flush()
}
