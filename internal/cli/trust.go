package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/specfile"
)

// trustOptions are the flags of the trust command.
type trustOptions struct {
	source
	yes, list, revoke bool
}

func (a *app) trustCommand() *cobra.Command {
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
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				t.path = args[0]
			}
			return a.trust(cmd.Context(), t)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&t.yes, "yes", false, "allow it without asking")
	f.BoolVar(&t.list, "list", false, "list what is allowed for which spec")
	f.BoolVar(&t.revoke, "revoke", false, "take back what is allowed for SPEC")
	f.StringVar(&t.coordinator, "coordinator", "", "take the coordinator's settings from `FILE` instead")
	t.mergeFlags(cmd)
	t.environment.fileFlag(cmd)
	return cmd
}

func (a *app) trust(ctx context.Context, t *trustOptions) error {
	switch {
	case t.list && (t.revoke || t.yes || t.path != ""):
		return usageError("--list takes no SPEC and no other flag")
	case t.revoke && t.yes:
		return usageError("--revoke and --yes contradict each other: leave one of them out")
	case t.path == "-":
		return usageError("standard input has no path to remember: write --allow-env NAME=ORIGIN when you run it")
	}
	store, err := a.trusted()
	if err != nil {
		return &fault{kind: kindIO, err: err}
	}
	switch {
	case t.list:
		return a.listTrusted(store)
	case t.revoke:
		return a.revokeTrusted(store, t.path)
	}
	return a.trustSpec(ctx, store, t)
}

// A trustedSpec is what trust says of a spec, in JSON.
type trustedSpec struct {
	Spec        string            `json:"spec"`
	Environment []specfile.EnvUse `json:"environment"`
	Trusted     bool              `json:"trusted"`
}

func (a *app) trustSpec(ctx context.Context, store *trustStore, t *trustOptions) error {
	t.noCalls = true // nothing is sent, so nothing has to be set or allowed
	file, err := t.load(ctx, a)
	if err != nil {
		return err
	}
	path, err := realPath(file.Path)
	if err != nil {
		return &fault{kind: kindIO, err: plainly(err)}
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return usageError("%s is not a regular file, so there is no path to remember: write --allow-env NAME=ORIGIN when you run it", cleanLine(file.Path))
	}
	uses := slices.DeleteFunc(slices.Clone(file.Env), func(u specfile.EnvUse) bool { return u.Known })
	said := trustedSpec{Spec: path, Environment: uses, Trusted: len(uses) == 0 || a.isTrusted(path, uses)}
	if said.Trusted {
		return a.sayTrusted(&said, "already allowed")
	}
	if !t.yes {
		if err := a.confirm(ctx, &said); err != nil {
			return err
		}
	}
	c := &consent{Spec: path, Digest: specfile.EnvDigest(uses), Environment: uses, Time: a.now().UTC()}
	if err := store.write(c); err != nil {
		return &fault{kind: kindIO, err: fmt.Errorf("keep the consent in %s: %w", store.folder, plainly(err))}
	}
	said.Trusted = true
	return a.sayTrusted(&said, "allowed, until this list changes")
}

// confirm shows what a spec sends where, and asks whether that is allowed.
func (a *app) confirm(ctx context.Context, said *trustedSpec) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s sends variables of your environment:\n", cleanLine(said.Spec))
	writeSent(&b, said.Environment, "  ")
	a.say("%s", b.String())
	if !a.isTerminal(a.stdin) || !a.isTerminal(a.stderr) {
		return usageError("to allow this without a terminal, add --yes")
	}
	_, _ = fmt.Fprint(a.screen, "Allow this? [y/N] ")
	answer, err := await(ctx, func() (string, error) {
		line, _ := bufio.NewReader(a.stdin).ReadString('\n') // nothing is an answer, too
		return line, nil
	})
	if err != nil {
		return err
	}
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		a.say("runteam: not allowed; nothing was changed")
		return ended(statusFailed)
	}
	return nil
}

func (a *app) sayTrusted(said *trustedSpec, verdict string) error {
	if a.settings.json() {
		if said.Environment == nil {
			said.Environment = []specfile.EnvUse{}
		}
		return a.printJSON(said)
	}
	if len(said.Environment) == 0 {
		return a.printText(cleanLine(said.Spec) + ": nothing to allow: it sends no variable that needs consent")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", cleanLine(said.Spec), verdict)
	writeSent(&b, said.Environment, "  ")
	return a.printText(b.String())
}

func (a *app) listTrusted(store *trustStore) error {
	all, err := store.list()
	if err != nil {
		return &fault{kind: kindIO, err: fmt.Errorf("%s: %w", store.folder, plainly(err))}
	}
	if a.settings.json() {
		if all == nil {
			all = []consent{}
		}
		return a.printJSON(all)
	}
	if len(all) == 0 {
		return a.printText("no spec is trusted")
	}
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%s (since %s)\n", cleanLine(c.Spec), c.Time.Format("2006-01-02"))
		writeSent(&b, c.Environment, "  ")
	}
	return a.printText(b.String())
}

// revokeTrusted takes back what is allowed for a spec, which may be gone.
func (a *app) revokeTrusted(store *trustStore, path string) error {
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
	at, err := realPath(path)
	if err != nil {
		return &fault{kind: kindIO, err: plainly(err)}
	}
	n, err := store.revoke(at)
	if err != nil {
		return &fault{kind: kindIO, err: fmt.Errorf("%s: %w", store.folder, plainly(err))}
	}
	if n == 0 {
		return usageError("%s: nothing is allowed for this spec; runteam trust --list shows for which it is", at)
	}
	if a.settings.json() {
		return a.printJSON(trustedSpec{Spec: at, Environment: []specfile.EnvUse{}})
	}
	return a.printText(cleanLine(at) + ": no longer allowed")
}
