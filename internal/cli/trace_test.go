package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/records"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

const auditKey = "a key of more than sixteen bytes"

// traced begins a trace as a command with these flags would.
func traced(con *console.Console, force bool, read []string, flags ...string) (*records.TraceWriter, error) {
	var t records.TraceFlags
	cmd := &cobra.Command{}
	t.AddTo(cmd)
	if err := cmd.Flags().Parse(flags); err != nil {
		return nil, err
	}
	file := &specfile.File{Name: "claims", Tasks: []task.Spec{{Key: "facts", Title: "Extract facts", Source: provenance.Source{Origin: provenance.Position{File: "team.yaml", Line: 14}}}}}
	file.Run.Inputs = []engine.Input{{Name: "claim", Text: "not for the trace", Classification: label.Internal}}
	return t.Begin(cmd, con, file, force, read...)
}

func headOf(t *testing.T, text string) (head audit.Head) {
	t.Helper()
	require.NoError(t, head.UnmarshalText([]byte(text)))
	return head
}

// decided is the record of a prompt that is never sent.
var decided = record.Prompt{Handoffs: []event.Handoff{{Session: "r1/t/1", From: "a", To: "b", Task: "t"}}}

func TestTraceIsWrittenDuringTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, anchor, key := filepath.Join(dir, "run.jsonl"), filepath.Join(dir, "head"), filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(key, []byte(auditKey+"\n"), 0o600))
	con, _, _ := clitest.Console(t)
	k, err := traced(con, false, nil, "--trace", path, "--audit-anchor", anchor, "--audit-key", key)
	require.NoError(t, err)
	require.NoFileExists(t, path, "a run that never starts leaves nothing behind")
	require.NoError(t, k.Recorder()(t.Context(), decided))
	require.FileExists(t, path)
	for _, take := range k.Subscribers() {
		take(event.Event{Seq: 1, Type: event.RunComplete, Run: "r1"})
	}
	require.NoError(t, k.Close(&engine.Result{RunID: "r1", Status: engine.StatusOK}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), "not for the trace")
	tr, err := trace.Read(strings.NewReader(string(text)))
	require.NoError(t, err)
	require.Equal(t, "r1", tr.Run)
	require.Equal(t, trace.Task{ID: task.NewID("Extract facts"), Key: "facts", Title: "Extract facts", Line: "team.yaml:14"}, tr.Tasks()[0])
	require.Equal(t, []trace.Input{{Name: "claim", Classification: label.Internal}}, tr.Inputs)
	require.Equal(t, decided.Handoffs[0].Session, tr.Handoffs[0].Session)
	require.Equal(t, 1, strings.Count(string(text), `{"event":`))
	require.EqualValues(t, engine.StatusOK, tr.State.End.Status)

	kept, err := os.ReadFile(anchor)
	require.NoError(t, err)
	head := headOf(t, strings.TrimSpace(string(kept)))
	report, err := audit.Verify(strings.NewReader(string(text)), audit.VerifyOptions{Key: []byte(auditKey), Head: head})
	require.NoError(t, err)
	require.Equal(t, audit.Verified, report.Status, report.Why)
	require.Equal(t, "audit: "+head.String()+" in "+anchor, k.Summary(false))
	require.Contains(t, k.Summary(true), "trace: "+path+"; to read it: runteam explain "+path+"\naudit: "+head.String()+" in "+anchor)
}

func TestTraceUsesTheKeyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.jsonl")
	con, _, _ := clitest.Console(t)
	con.LookupEnv = func(name string) (string, bool) { return auditKey, name == journals.EnvAuditKey }
	k, err := traced(con, false, nil, "--trace", path)
	require.NoError(t, err)
	require.NoError(t, k.Close(nil))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	report, err := audit.Verify(file, audit.VerifyOptions{Key: []byte(auditKey), Head: headOf(t, k.Head())})
	require.NoError(t, err)
	require.Equal(t, audit.Verified, report.Status, report.Why)
	require.True(t, report.Keyed)
}

func TestRunWithoutATraceHasNone(t *testing.T) {
	t.Parallel()
	con, _, _ := clitest.Console(t)
	k, err := traced(con, false, nil)
	require.NoError(t, err)
	require.Nil(t, k)
	require.Nil(t, k.Subscribers())
	require.Nil(t, k.Recorder())
	require.NoError(t, k.Close(nil))
}

func TestTraceRefusesFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, key, link := filepath.Join(dir, "old.jsonl"), filepath.Join(dir, "key"), filepath.Join(dir, "link")
	spec, long := filepath.Join(dir, "team.yaml"), filepath.Join(dir, "long")
	require.NoError(t, os.WriteFile(spec, nil, 0o600))
	require.NoError(t, os.WriteFile(long, []byte(auditKey), 0o600))
	require.NoError(t, os.WriteFile(old, []byte("old"), 0o600))
	require.NoError(t, os.WriteFile(key, []byte("short\n"), 0o600))
	require.NoError(t, os.Symlink(old, link))
	path := filepath.Join(dir, "run.jsonl")
	tests := []struct {
		name  string
		force bool
		flags []string
		want  string
	}{
		{"an empty name", false, []string{"--trace", ""}, "--trace is empty: name a file"},
		{"a file that exists", false, []string{"--trace", old}, "it exists: add --force to replace it"},
		{"a link", true, []string{"--trace", link}, "it is a link to " + old},
		{"a file that the command reads", true, []string{"--trace", spec}, "the command uses this file for something else"},
		{"an anchor that the trace would replace", false, []string{"--trace", path, "--audit-anchor", path}, "--audit-anchor " + path + ": the command uses this file for something else"},
		{"an anchor that is a folder", false, []string{"--trace", path, "--audit-anchor", dir}, "it is a folder"},
		{"an anchor without a trace", false, []string{"--audit-anchor", path}, "--audit-anchor needs --trace"},
		{"a key that is not there", false, []string{"--trace", path, "--audit-key", path}, "--audit-key " + path + ": no such file"},
		{"a key that can be guessed", false, []string{"--trace", path, "--audit-key", key}, "has 5 bytes"},
		{"a key that the trace would replace", true, []string{"--trace", long, "--audit-key", long}, "--trace " + long + ": the command uses this file for something else"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			con, _, _ := clitest.Console(t)
			_, err := traced(con, tt.force, []string{spec}, tt.flags...)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, exit.StatusUsage, con.Report(err))
		})
	}
	text, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
}

// The file that --force replaces is the one that was there when the command began.
func TestTraceReplacesOnlyTheFileThatItFound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	con, _, _ := clitest.Console(t)
	k, err := traced(con, true, nil, "--trace", path)
	require.NoError(t, err)
	require.NoError(t, k.Recorder()(t.Context(), decided))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	k, err = traced(con, true, nil, "--trace", path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("somebody else's"), 0o600))
	require.ErrorContains(t, k.Recorder()(t.Context(), decided), "is left as it is")
	require.ErrorContains(t, k.Close(nil), "is left as it is")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "somebody else's", string(text))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// A prompt that cannot be recorded is not sent.
//
// Requirement: G44.
func TestTraceThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sub")
	require.NoError(t, os.Mkdir(dir, 0o700))
	con, _, _ := clitest.Console(t)
	anchor := filepath.Join(filepath.Dir(dir), "head")
	k, err := traced(con, false, nil, "--trace", filepath.Join(dir, "run.jsonl"), "--audit-anchor", anchor)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	require.Error(t, k.Recorder()(context.Background(), decided))
	err = k.Close(nil)
	require.ErrorContains(t, err, "--trace "+filepath.Join(dir, "run.jsonl")+": ")
	require.ErrorContains(t, err, "; --audit-anchor "+anchor+": not written, since the trace has no end")
	require.NoFileExists(t, anchor)
	f, ok := errors.AsType[*exit.Error](err)
	require.True(t, ok)
	require.Equal(t, exit.KindIO, f.Kind)
}

// The result in a trace is the one that the command prints.
func TestTraceHasTheResultForTheCaller(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.jsonl")
	con, _, _ := clitest.Console(t)
	k, err := traced(con, false, nil, "--trace", path)
	require.NoError(t, err)
	res := &engine.Result{RunID: "r1", Status: engine.StatusOK, Tasks: []engine.TaskResult{{ID: "t", Title: "T", Status: task.Completed, Result: "[withheld: secret]", Structured: ""}}}
	require.NoError(t, k.Close(res))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var last struct{ Result json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-2]), &last), "the closing line comes after it")
	want, err := json.Marshal(res)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(last.Result))
}

// The error about a full disk does not have the name of the temporary file. Before it, the command writes --trace and the
// path, as before each error about the trace.
//
// Requirement: G44.
func TestFullDiskErrorOfATrace(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full")
	}
	defer full.Close()
	out := &files.LazyOutput{Output: &files.Output{Flag: "trace", Path: "run.jsonl"}, File: full}
	require.EqualError(t, trace.NewWriter(out, trace.Options{}).Record(t.Context(), decided), "trace: no space left on device")
}
