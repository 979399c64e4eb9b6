package cli

import (
	"context"
	"errors"

	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/spf13/cobra"
)

func mockCommand(con *console.Console) *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:     "mock SCRIPT",
		Short:   "Serve an OpenAI-compatible endpoint that answers from a script, until Ctrl-C",
		Example: "  runteam mock script.yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("%s takes one SCRIPT, not %d; docs/reference/scripts.md describes it", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return mock(cmd.Context(), con, args[0], addr) },
	}
	cmd.Flags().StringVar(&addr, "addr", "", "listen at `HOST:PORT` (default: a free port on loopback; :8080 is loopback too)")
	return cmd
}

// mock serves a script until a signal, which is a success.
func mock(ctx context.Context, con *console.Console, path, addr string) error {
	script, _, err := connect.ReadScript(ctx, con.WorkDir, path, path)
	if err != nil {
		return err
	}
	server, err := scripted.Start(script, scripted.Options{Addr: addr})
	if err != nil {
		return &exit.Error{Kind: exit.KindUsage, Err: err}
	}
	if err := printBase(con, server.URL()); err != nil {
		return errors.Join(err, server.Close())
	}
	con.Say("runteam: answering from %s until Ctrl-C. In another terminal:", terminal.CleanLine(path))
	con.Say("  OPENAI_BASE_URL=%s runteam run SPEC --model scripted", server.URL())
	<-ctx.Done()
	return server.Close()
}

// printBase prints the base URL of the endpoint.
func printBase(con *console.Console, url string) error {
	if con.Settings.JSON() {
		return con.PrintJSON(struct {
			BaseURL string `json:"baseURL"`
		}{url})
	}
	return con.PrintText(url)
}
