package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/llm"
	"github.com/stretchr/testify/require"
)

func TestRecordingTooLargeForAScript(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	r := &connect.Recording{File: &files.Output{Flag: "record", Path: filepath.Join(t.TempDir(), "f.yaml")}, Models: &scripted.Recorder{}}
	long := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: strings.Repeat("long ", scripted.MaxFile/20)}, nil
	})
	for range 5 {
		_, err := r.Models.Model(long).Call(t.Context(), llm.Request{}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, r.Save())
	require.Contains(t, r.Summary(&engine.Result{}), "5 answers in ")
	require.Contains(t, r.Summary(&engine.Result{}), "too large to be read as one script")
	require.FileExists(t, r.File.Path)
}
