package journals

import (
	"strings"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/journal"
)

// EnvAuditKey names the environment variable that --key-file and --audit-key go before.
const EnvAuditKey = "RUNTEAM_AUDIT_KEY"

// AuditKey returns the key of a record, from the file that a flag names, or
// without one from the environment. A line feed at its end is left out. Without a key it returns nil.
func AuditKey(con *console.Console, flag, file string) ([]byte, error) {
	from := EnvAuditKey
	text, _ := con.LookupEnv(EnvAuditKey)
	if file != "" {
		read, err := files.ReadKey(flag, file)
		if err != nil {
			return nil, err
		}
		from, text = file, read
	} else if text == "" {
		return nil, nil
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	if len(text) < audit.MinKey {
		return nil, exit.Usagef("the key in %s has %s: a key has %d or more", from, format.Plural(len(text), "byte"), audit.MinKey)
	}
	return []byte(text), nil
}

// JournalKey returns the key of what is above confidential, from a file, or
// without one from the environment. No key is nil.
func JournalKey(con *console.Console, file string) ([]byte, error) {
	from := EnvJournalKey
	text, _ := con.LookupEnv(EnvJournalKey)
	if file != "" {
		read, err := files.ReadKey("journal-key", file)
		if err != nil {
			return nil, err
		}
		from, text = "--journal-key "+file, read
	} else if text == "" {
		return nil, nil
	}
	key, err := journal.ParseKey([]byte(text))
	if err != nil {
		return nil, exit.Usagef("%s: %w", from, err)
	}
	return key, nil
}
