package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
and asks whether to allow it. The answer is stored in your configuration and applies
until the list of names and endpoints changes. trust runs nothing.

The key of a well-known provider may be sent to that provider without consent, and
OPENAI_API_KEY to OPENAI_BASE_URL.`,
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
	f.BoolVar(&t.revoke, "revoke", false, "revoke what is allowed for SPEC")
	t.AddCoordinatorFlagTo(cmd)
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
		return exit.Usagef("standard input has no path to store: write --allow-env NAME=ORIGIN when you run it")
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

// A trustedSpec is the output of trust, in JSON.
type trustedSpec struct {
	Spec        string            `json:"spec"`
	Environment []specfile.EnvUse `json:"environment"`
	Trusted     bool              `json:"trusted"`
}

func trustSpec(ctx context.Context, con *console.Console, store *source.TrustStore, t *trustOptions) error {
	t.NoCalls, t.AnyAllow = true, true // nothing is sent, so nothing has to be set or allowed
	file, err := t.Load(ctx, con)
	if err != nil {
		return err
	}
	path, err := source.RealPath(con.WorkDir, file.Path)
	if err != nil {
		return &exit.Error{Kind: exit.KindIO, Err: exit.WithoutPath(err)}
	}
	if info, err := con.WorkDir.Stat(path); err != nil || !info.Mode().IsRegular() {
		return exit.Usagef("%s is not a regular file, so there is no path to store: write --allow-env NAME=ORIGIN when you run it", terminal.CleanLine(file.Path))
	}
	uses := slices.DeleteFunc(slices.Clone(file.Env), func(u specfile.EnvUse) bool { return u.Known })
	doc := trustedSpec{Spec: path, Environment: uses, Trusted: len(uses) == 0 || source.IsTrusted(con, path, uses)}
	if doc.Trusted {
		return printTrusted(con, &doc, "already allowed")
	}
	if !t.yes {
		if err := confirm(ctx, con, &doc); err != nil {
			return err
		}
	}
	c := &source.Consent{Spec: path, Digest: specfile.EnvDigest(uses), Environment: uses, Time: con.Now().UTC()}
	if err := store.Write(c); err != nil {
		return exit.Errorf(exit.KindIO, "store the consent in %s: %w", store.Folder, exit.WithoutPath(err))
	}
	doc.Trusted = true
	return printTrusted(con, &doc, "allowed until this list changes")
}

// confirm shows what a spec sends where, and asks whether that is allowed.
func confirm(ctx context.Context, con *console.Console, doc *trustedSpec) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s sends variables of your environment:\n", terminal.CleanLine(doc.Spec))
	source.WriteVariables(&b, doc.Environment, "  ")
	con.Say("%s", b.String())
	if !con.IsTerminal(con.Stdin) || !con.IsTerminal(con.Stderr) {
		return exit.Usagef("to allow this without a terminal, add --yes")
	}
	_, _ = fmt.Fprint(con.Screen, "Allow this? [y/N] ")
	answer, err := files.Await(ctx, func() (string, error) {
		line, _ := bufio.NewReader(con.Stdin).ReadString('\n') // an empty answer means no
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

func printTrusted(con *console.Console, doc *trustedSpec, verdict string) error {
	if doc.Environment == nil {
		doc.Environment = []specfile.EnvUse{}
	}
	return con.PrintResult(doc, func(w io.Writer) {
		if len(doc.Environment) == 0 {
			verdict = "nothing to allow: it sends no variable that needs consent"
		}
		fmt.Fprintf(w, "%s: %s\n", terminal.CleanLine(doc.Spec), verdict)
		source.WriteVariables(w, doc.Environment, "  ")
	})
}

func listTrusted(con *console.Console, store *source.TrustStore) error {
	all, err := store.List()
	if err != nil {
		return exit.FileError(store.Folder, err)
	}
	if all == nil {
		all = []source.Consent{}
	}
	return con.PrintResult(all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "no spec is trusted")
		}
		for _, c := range all {
			fmt.Fprintf(w, "%s (since %s)\n", terminal.CleanLine(c.Spec), c.Time.Format(time.DateOnly))
			source.WriteVariables(w, c.Environment, "  ")
		}
	})
}

// revokeTrusted revokes what is allowed for a spec, which may no longer exist.
func revokeTrusted(con *console.Console, store *source.TrustStore, path string) error {
	if path == "" {
		path = "."
	}
	if con.WorkDir.IsDir(path) {
		for _, name := range []string{"team.yaml", "team.yml", "team.json"} {
			if _, err := con.WorkDir.Stat(filepath.Join(path, name)); err == nil {
				path = filepath.Join(path, name)
				break
			}
		}
	}
	at, err := source.RealPath(con.WorkDir, path)
	if err != nil {
		return &exit.Error{Kind: exit.KindIO, Err: exit.WithoutPath(err)}
	}
	n, err := store.Revoke(at)
	if err != nil {
		return exit.FileError(store.Folder, err)
	}
	if n == 0 {
		return exit.Usagef("%s: nothing is allowed for this spec; runteam trust --list shows the specs with consent", at)
	}
	return con.PrintResult(trustedSpec{Spec: at, Environment: []specfile.EnvUse{}}, func(w io.Writer) {
		fmt.Fprintln(w, terminal.CleanLine(at)+": no longer allowed")
	})
}
