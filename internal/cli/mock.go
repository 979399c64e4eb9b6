package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/scripted"
)

func (a *app) mockCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:     "mock SCRIPT",
		Short:   "Serve an OpenAI-compatible endpoint that answers from a script, until Ctrl-C",
		Example: "  runteam mock script.yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("%s takes one SCRIPT, not %d; docs/scripts.md describes it", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.mock(cmd.Context(), args[0], addr) },
	}
	cmd.Flags().StringVar(&addr, "addr", "", "listen at `HOST:PORT` (default: a free port on loopback; :8080 is loopback too)")
	return cmd
}

// mock serves a script. A signal is how it ends, so that is a success.
func (a *app) mock(ctx context.Context, path, addr string) error {
	script, _, err := readScript(ctx, path, path)
	if err != nil {
		return err
	}
	server, err := scripted.Start(script, scripted.Options{Addr: addr})
	if err != nil {
		return &fault{kind: kindUsage, err: err}
	}
	if err := a.printBase(server.URL()); err != nil {
		return errors.Join(err, server.Close())
	}
	a.say("runteam: answering from %s; Ctrl-C ends it. In another terminal:", cleanLine(path))
	a.say("  OPENAI_BASE_URL=%s runteam run SPEC --model scripted", server.URL())
	<-ctx.Done()
	return server.Close()
}

// printBase prints where the endpoint is, for people and for scripts.
func (a *app) printBase(url string) error {
	if a.settings.json() {
		return a.printJSON(struct {
			BaseURL string `json:"baseURL"`
		}{url})
	}
	return a.print(func(w io.Writer) error {
		_, err := io.WriteString(w, url+"\n")
		return err
	})
}
