package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/spf13/cobra"
)

// trustOptions are the flags of the trust command.
type trustOptions struct {
	source.SpecFlags
	yes, list, revoke bool
}

func trustCommand(con *console.Console) *cobra.Command {
	t := &trustOptions{}
	cmd := &cobra.Command{
		Use:   "trust [SPEC]",
		Short: "Show which variables of your environment a spec sends where, and allow it",
		Long: `trust shows which variables of the environment a spec sends to which endpoint,
and asks whether to allow it. The answer is kept in your own configuration until
the list changes: another name or another endpoint asks again. Nothing is run.

The key of a well-known provider needs no consent to go to that provider, nor
OPENAI_API_KEY to go to OPENAI_BASE_URL.`,
		Example: `  runteam trust                                the team.yaml of this folder
  runteam trust claims.yaml --yes              without asking, for scripts
  runteam trust --list
  runteam trust claims.yaml --revoke`,
		Args: t.Argument,
		RunE: func(cmd *cobra.Command, _ []string) error { return trust(cmd.Context(), con, t) },
	}
	f := cmd.Flags()
	f.BoolVar(&t.yes, "yes", false, "allow it without asking")
	f.BoolVar(&t.list, "list", false, "list what is allowed for which spec")
	f.BoolVar(&t.revoke, "revoke", false, "take back what is allowed for SPEC")
	f.StringVar(&t.Coordinator, "coordinator", "", "take the coordinator's settings from `FILE` instead")
	t.AddMergeFlagsTo(cmd)
	t.Environment.AddFileFlagTo(cmd)
	return cmd
}

func trust(ctx context.Context, con *console.Console, t *trustOptions) error {
	switch {
	case t.list && (t.revoke || t.yes || t.Path != ""):
		return exit.Usagef("--list takes no SPEC and no other flag")
	case t.revoke && t.yes:
		return exit.Usagef("--revoke and --yes contradict each other: leave one of them out")
	case t.Path == "-":
		return exit.Usagef("standard input has no path to remember: write --allow-env NAME=ORIGIN when you run it")
	}
	store, err := source.NewTrustStore(con)
	if err != nil {
		return &exit.Error{Kind: exit.KindIO, Err: err}
	}
	switch {
	case t.list:
		return listTrusted(con, store)
	case t.revoke:
		return revokeTrusted(con, store, t.Path)
	}
	return trustSpec(ctx, con, store, t)
}

// A trustedSpec is what trust says of a spec, in JSON.
type trustedSpec struct {
	Spec        string            `json:"spec"`
	Environment []specfile.EnvUse `json:"environment"`
	Trusted     bool              `json:"trusted"`
}

func trustSpec(ctx context.Context, con *console.Console, store *source.TrustStore, t *trustOptions) error {
	t.NoCalls = true // nothing is sent, so nothing has to be set or allowed
	file, err := t.Load(ctx, con)
	if err != nil {
		return err
	}
	path, err := source.RealPath(file.Path)
	if err != nil {
		return &exit.Error{Kind: exit.KindIO, Err: exit.WithoutPath(err)}
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return exit.Usagef("%s is not a regular file, so there is no path to remember: write --allow-env NAME=ORIGIN when you run it", terminal.CleanLine(file.Path))
	}
	uses := slices.DeleteFunc(slices.Clone(file.Env), func(u specfile.EnvUse) bool { return u.Known })
	said := trustedSpec{Spec: path, Environment: uses, Trusted: len(uses) == 0 || source.IsTrusted(con, path, uses)}
	if said.Trusted {
		return sayTrusted(con, &said, "already allowed")
	}
	if !t.yes {
		if err := confirm(ctx, con, &said); err != nil {
			return err
		}
	}
	c := &source.Consent{Spec: path, Digest: specfile.EnvDigest(uses), Environment: uses, Time: con.Now().UTC()}
	if err := store.Write(c); err != nil {
		return exit.Errorf(exit.KindIO, "keep the consent in %s: %w", store.Folder, exit.WithoutPath(err))
	}
	said.Trusted = true
	return sayTrusted(con, &said, "allowed, until this list changes")
}

// confirm shows what a spec sends where, and asks whether that is allowed.
func confirm(ctx context.Context, con *console.Console, said *trustedSpec) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s sends variables of your environment:\n", terminal.CleanLine(said.Spec))
	source.WriteVariables(&b, said.Environment, "  ")
	con.Say("%s", b.String())
	if !con.IsTerminal(con.Stdin) || !con.IsTerminal(con.Stderr) {
		return exit.Usagef("to allow this without a terminal, add --yes")
	}
	_, _ = fmt.Fprint(con.Screen, "Allow this? [y/N] ")
	answer, err := files.Await(ctx, func() (string, error) {
		line, _ := bufio.NewReader(con.Stdin).ReadString('\n') // nothing is an answer, too
		return line, nil
	})
	if err != nil {
		return err
	}
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		con.Say("runteam: not allowed; nothing was changed")
		return exit.Status(exit.StatusFailed)
	}
	return nil
}

func sayTrusted(con *console.Console, said *trustedSpec, verdict string) error {
	if con.Settings.JSON() {
		if said.Environment == nil {
			said.Environment = []specfile.EnvUse{}
		}
		return con.PrintJSON(said)
	}
	if len(said.Environment) == 0 {
		return con.PrintText(terminal.CleanLine(said.Spec) + ": nothing to allow: it sends no variable that needs consent")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", terminal.CleanLine(said.Spec), verdict)
	source.WriteVariables(&b, said.Environment, "  ")
	return con.PrintText(b.String())
}

func listTrusted(con *console.Console, store *source.TrustStore) error {
	all, err := store.List()
	if err != nil {
		return exit.FileError(store.Folder, err)
	}
	if con.Settings.JSON() {
		if all == nil {
			all = []source.Consent{}
		}
		return con.PrintJSON(all)
	}
	if len(all) == 0 {
		return con.PrintText("no spec is trusted")
	}
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%s (since %s)\n", terminal.CleanLine(c.Spec), c.Time.Format("2006-01-02"))
		source.WriteVariables(&b, c.Environment, "  ")
	}
	return con.PrintText(b.String())
}

// revokeTrusted takes back what is allowed for a spec, which may be gone.
func revokeTrusted(con *console.Console, store *source.TrustStore, path string) error {
	if path == "" {
		path = "."
	}
	if at, err := os.Stat(path); err == nil && at.IsDir() {
		for _, name := range []string{"team.yaml", "team.yml", "team.json"} {
			if _, err := os.Stat(filepath.Join(path, name)); err == nil {
				path = filepath.Join(path, name)
				break
			}
		}
	}
	at, err := source.RealPath(path)
	if err != nil {
		return &exit.Error{Kind: exit.KindIO, Err: exit.WithoutPath(err)}
	}
	n, err := store.Revoke(at)
	if err != nil {
		return exit.FileError(store.Folder, err)
	}
	if n == 0 {
		return exit.Usagef("%s: nothing is allowed for this spec; runteam trust --list shows for which it is", at)
	}
	if con.Settings.JSON() {
		return con.PrintJSON(trustedSpec{Spec: at, Environment: []specfile.EnvUse{}})
	}
	return con.PrintText(terminal.CleanLine(at) + ": no longer allowed")
}
