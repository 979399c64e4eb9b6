package journal_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/label"
)

// The caller may see secrets, and readers of the file may not: it holds size classes of
// inputs and messages above the plaintext limit, with a key and without one.
//
// Requirement: G42.
func TestSizesAboveThePlaintextLimitAreClasses(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]byte{"with a key": oneKey, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{Key: key})
			require.NoError(t, err)
			defer j.Close() //nolint:errcheck // reads only
			r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
			require.NoError(t, err)
			var read []string
			tm, specs := talking(t, true, &read)
			for i := range specs {
				specs[i].Classification = label.Secret
			}
			res, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{
				RunID: "r1", Journal: journaltest.Opened(r), UserAccepts: new(label.Secret), Bus: tm.NewBus(),
				Inputs: []engine.Input{{Name: "pin", Text: "4711", Classification: label.Secret}, {Name: "year", Text: "2026"}},
			})
			require.NoError(t, err)
			require.NoError(t, res.JournalErr)
			_, err = r.Close(t.Context())
			require.NoError(t, err)
			inputs, messages := 0, 0
			for text, err := range j.Lines(t.Context(), "r1") {
				require.NoError(t, err)
				if !strings.HasPrefix(string(text), `{"begin"`) && !strings.HasPrefix(string(text), `{"message"`) {
					continue
				}
				var line struct {
					Begin struct {
						Inputs []struct {
							Name  string
							Bytes int
						}
					}
					Message struct{ Bytes int }
				}
				require.NoError(t, json.Unmarshal(text, &line))
				for _, given := range line.Begin.Inputs {
					inputs++
					require.Equal(t, map[string]int{"pin": bytesize.Class(1), "year": 4}[given.Name], given.Bytes, given.Name)
				}
				if strings.HasPrefix(string(text), `{"message"`) {
					messages++
					require.Equal(t, bytesize.Class(1), line.Message.Bytes)
				}
			}
			require.Equal(t, 2, inputs)
			require.Equal(t, 1, messages)
		})
	}
}
