package journals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/journal"
)

// The environment variables that hold keys. The flags that name a file take precedence.
const (
	EnvJournalKey = "RUNTEAM_JOURNAL_KEY"
	EnvAuditKey   = "RUNTEAM_AUDIT_KEY"
)

// AuditKey returns the key that signs a record, from the file that a flag names or else from the
// environment. A final line feed is removed. Without a key it returns nil.
func AuditKey(con *console.Console, flag, file string) ([]byte, error) {
	text, from, err := keyText(con, flag, file, EnvAuditKey)
	if err != nil || text == "" && file == "" {
		return nil, err
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	if len(text) < audit.MinKey {
		return nil, exit.Usagef("%s: the key has %s: a key has %d or more", from, format.Plural(len(text), "byte"), audit.MinKey)
	}
	return []byte(text), nil
}

// JournalKey returns the key that encrypts what is above confidential, from a file or else from
// the environment. Without a key it returns nil.
func JournalKey(con *console.Console, file string) ([]byte, error) {
	text, from, err := keyText(con, "journal-key", file, EnvJournalKey)
	if err != nil || text == "" && file == "" {
		return nil, err
	}
	key, err := journal.ParseKey([]byte(text))
	if err != nil {
		return nil, exit.Usagef("%s: %w", from, err)
	}
	return key, nil
}

// keyHint says how to give the key of a journal.
const keyHint = ": give that key with --journal-key FILE or " + EnvJournalKey

// addKeyHint adds to an error about a missing key how to give the key.
func addKeyHint(err error) error {
	if _, ok := errors.AsType[*journal.KeyError](err); ok {
		return fmt.Errorf("%w%s", err, keyHint)
	}
	return err
}

// LoadRun reads a run. The reasons why its texts cannot be read say how to give a missing key.
func LoadRun(ctx context.Context, j *journal.Journal, run string) (*journal.Stored, error) {
	stored, err := j.Load(ctx, run)
	if err != nil {
		return nil, ReadError(ctx, err)
	}
	addKeyHints(stored)
	return stored, nil
}

// addKeyHints adds to the reasons why texts of a run cannot be read how to give a missing key.
func addKeyHints(stored *journal.Stored) {
	if journal.Locked(stored.Info.Unreadable) {
		stored.Info.Unreadable += keyHint
	}
	files, log := &stored.Info.Files, &stored.History.Log
	for i := range *files {
		if journal.Locked((*files)[i].Missing) {
			*files = slices.Clone(*files) // other readers of the run share it
			(*files)[i].Missing += keyHint
		}
	}
	cloned := false
	for i := range *log {
		x := (*log)[i].Exchange
		if x == nil || !journal.Locked(x.Missing) {
			continue
		}
		if !cloned {
			*log, cloned = slices.Clone(*log), true
		}
		x = new(*x)
		x.Missing += keyHint
		(*log)[i].Exchange = x
	}
}

// keyText reads a key, and names where it is from.
func keyText(con *console.Console, flag, file, env string) (text, from string, err error) {
	if file == "" {
		text, _ = con.LookupEnv(env)
		return text, env, nil
	}
	text, err = files.ReadKey(con.WorkDir, flag, file)
	return text, "--" + flag + " " + file, err
}
