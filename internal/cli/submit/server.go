package submit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runteam/runteam/inspect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/inspector"
)

// serverFlags name a server that stores runs.
type serverFlags struct {
	url       string
	tokenFile string
}

func (s *serverFlags) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.url, "server", "", "store the run through runteam serve at `URL`; SPEC is the name of a spec that it serves")
	f.StringVar(&s.tokenFile, "token-file", "", "the token of the programs of --server is in `FILE` (default: $"+inspector.EnvToken+")")
	flags.Complete(cmd, "server", nil)
}

// ofSubmission are the flags that a server gets. The others are settings of its own.
var ofSubmission = []string{"server", "token-file", "input", "param", "goal", "id", "at", "priority", "wait"}

// check refuses flags that have no meaning together.
func (s *serverFlags) check(cmd *cobra.Command) (err error) {
	if s.url == "" {
		if cmd.Flags().Changed("server") {
			return exit.Usagef("--server is empty: write the URL of the server, such as http://127.0.0.1:7337, or leave it out")
		}
		if s.tokenFile != "" {
			return exit.Usagef("--token-file is for --server URL: name the server, or leave it out")
		}
		return nil
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && !slices.Contains(ofSubmission, f.Name) && err == nil {
			err = exit.Usagef("--%s is a setting of the server: with --server, leave it out", f.Name)
		}
	})
	return err
}

// connect returns the server. It sends nothing.
func (s *serverFlags) connect(con *console.Console) (place, error) {
	token, _ := con.LookupEnv(inspector.EnvToken)
	if s.tokenFile != "" {
		var err error
		if token, err = files.ReadText(context.Background(), con.Stdin, con.WorkDir, "--token-file", s.tokenFile, maxToken); err != nil {
			return nil, err
		}
	}
	if strings.TrimSpace(token) == "" {
		return nil, exit.Usagef("--server needs the token of its programs: give --token-file FILE, or set %s", inspector.EnvToken)
	}
	client, err := inspect.New(s.url, token)
	if err != nil {
		return nil, exit.Usagef("--server: %s", strings.TrimPrefix(err.Error(), "inspect: "))
	}
	base := strings.TrimRight(s.url, "/")
	if strings.HasPrefix(base, "http:") && !endpoint.IsLocal(base) {
		con.Say("runteam: warning: --server %s: others on the network can read the token and the run, since http does not encrypt", terminal.CleanLine(base))
	}
	return &onServer{client, base}, nil
}

// maxToken bounds the file of a token, in bytes.
const maxToken = 4 << 10

// onServer stores runs through a server.
type onServer struct {
	client *inspect.Client
	base   string
}

func (o *onServer) close() {}

func (o *onServer) lookEvery() time.Duration { return time.Second }

func (o *onServer) submit(ctx context.Context, con *console.Console, s *submission) (run string, added bool, err error) {
	of, err := s.start(ctx, con)
	if err != nil {
		return "", false, err
	}
	run, added, err = o.client.Submit(ctx, inspect.Submission{Start: *of, ID: s.request, At: s.due, Priority: s.priority})
	if err != nil {
		return "", false, o.fail(ctx, err)
	}
	return run, added, nil
}

// start returns what is given to the spec, with the texts of files.
func (s *submission) start(ctx context.Context, con *console.Console) (*inspect.Start, error) {
	if s.spec.Path == "" {
		return nil, exit.Usagef("--server needs a SPEC: the name of one that it serves")
	}
	given, params, goal, err := s.spec.Given(con.Stdin)
	if err != nil {
		return nil, err
	}
	of := &inspect.Start{Spec: s.spec.Path, Inputs: map[string]string{}, Params: params, Goal: goal}
	for name, path := range given {
		if source.IsResult(path) {
			return nil, exit.Usagef("--input %s: a server gets texts, and no result of a run: give a file", name)
		}
		text, err := files.ReadText(ctx, con.Stdin, con.WorkDir, "--input "+name+":", path, maxInput)
		if err != nil {
			return nil, err
		}
		if !utf8.ValidString(text) {
			return nil, exit.Usagef("--input %s: %s: it is not UTF-8; give a text", name, path)
		}
		of.Inputs[name] = text
	}
	return of, nil
}

// maxInput bounds the text of an input, in bytes: a request has no more.
const maxInput = 1 << 20

func (o *onServer) look(ctx context.Context, _ *console.Console, run string) (*progress, error) {
	text, err := o.client.Run(ctx, run)
	if refused, ok := errors.AsType[*inspect.Error](err); ok && refused.Status == http.StatusNotFound {
		return nil, exit.Errorf(exit.KindRuntime, "--server %s: it does not show run %s any more: the run was removed, or its worker has a higher clearance than the server", terminal.CleanLine(o.base), journals.ShortRun(run))
	}
	if err != nil {
		err = o.fail(ctx, err)
		return nil, exit.Errorf(exit.KindOf(err), "%w; run %s stays submitted", err, journals.ShortRun(run))
	}
	p := &progress{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, exit.Errorf(exit.KindRuntime, "--server: its answer cannot be read: %w", err)
	}
	return p, nil
}

func (o *onServer) shows(string) string   { return "the page at " + terminal.CleanLine(o.base) }
func (o *onServer) resumes(string) string { return o.shows("") }

// fail returns the error of the command for one of the client.
func (o *onServer) fail(ctx context.Context, err error) error {
	text := terminal.Clean(strings.TrimPrefix(err.Error(), "inspect: "))
	refused, ok := errors.AsType[*inspect.Error](err)
	if !ok {
		if away, is := errors.AsType[*url.Error](err); is {
			text = "it cannot be reached: " + terminal.Clean(away.Err.Error())
		}
		return exit.Errorf(exit.KindIO, "--server %s: %s", terminal.CleanLine(o.base), text)
	}
	kind := exit.KindRuntime
	switch refused.Status {
	case http.StatusUnprocessableEntity, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		kind = exit.KindValidation
	case http.StatusUnauthorized:
		kind, text = exit.KindUsage, "it does not know the token; give that of its --token-file or its "+inspector.EnvToken
	case http.StatusNotFound:
		kind, text = exit.KindUsage, refused.Message
		if served := o.served(ctx); served != "" {
			text += "; it serves " + served
		}
	}
	return exit.Errorf(kind, "--server %s: %s", terminal.CleanLine(o.base), text)
}

// served returns the names of the served specs; empty if they are not known.
func (o *onServer) served(ctx context.Context) string {
	var specs []struct{ Name string }
	text, err := o.client.Get(ctx, "/specs")
	if err != nil || json.Unmarshal(text, &specs) != nil {
		return ""
	}
	var names []string
	for _, of := range specs {
		names = append(names, fmt.Sprintf("%q", terminal.CleanLine(of.Name)))
	}
	return strings.Join(names, ", ")
}
