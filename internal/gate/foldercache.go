package gate

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/redact"
)

// A FolderCache keeps what was read and redacted of folders that many readers are offered, so that this is not done again
// for each of them. It decides nothing: the same offer gets the same decision with and without one. The zero value
// is empty, and a nil one keeps nothing. It is safe for concurrent use.
type FolderCache struct {
	trees sync.Map // by the name of the source: *readFolder
	files sync.Map // by redactedFile: *cleanFile
	sums  sync.Map // by *string, the text of a clean file: func() [sha256.Size]byte
}

// A readFolder is a folder that was read.
type readFolder struct {
	text string // of which envelope
	tree filetree.Tree
}

// A redactedFile names what was done once: the redaction of a file of a source, with nothing revealed.
type redactedFile struct {
	by           *redact.Redactor
	source, path string
}

// A cleanFile is a file without secrets and personal data.
type cleanFile struct {
	of       *string // before; nil of a file that was removed
	name     string
	text     *string // that of before if nothing was redacted
	redacted redact.Counts
	revealed redact.Counts
}

// read returns the files of a folder, which must not be changed.
func (c *FolderCache) read(source, text string) (filetree.Tree, error) {
	if c != nil {
		if known, ok := c.trees.Load(source); ok && known.(*readFolder).text == text {
			return known.(*readFolder).tree, nil
		}
	}
	tree, err := filetree.Parse(text)
	if c != nil && err == nil {
		c.trees.Store(source, &readFolder{text, tree})
	}
	return tree, err
}

// redact returns a file without secrets and personal data, but for what is revealed; reveal may be nil.
func (c *FolderCache) redact(ctx context.Context, r *redact.Redactor, source, path string, text *string, reveal func(redact.Kind, []string) bool) (*cleanFile, error) {
	key := redactedFile{r, source, path}
	keeps := c != nil && reveal == nil
	if keeps {
		if known, ok := c.files.Load(key); ok && filetree.SameText(known.(*cleanFile).of, text) {
			return known.(*cleanFile), nil
		}
	}
	f, err := redactFile(ctx, r, path, text, reveal)
	if keeps && err == nil {
		c.files.Store(key, f)
		if f.text != nil {
			c.sums.Store(f.text, sync.OnceValue(func() [sha256.Size]byte { return sha256.Sum256([]byte(*f.text)) }))
		}
	}
	return f, err
}

// Sum returns the SHA-256 digest of the text of a delivered file.
func (c *FolderCache) Sum(text *string) [sha256.Size]byte {
	if c != nil {
		if sum, ok := c.sums.Load(text); ok {
			return sum.(func() [sha256.Size]byte)()
		}
	}
	return sha256.Sum256([]byte(*text))
}

// redactFile redacts the name and the text of a file.
func redactFile(ctx context.Context, r *redact.Redactor, path string, of *string, reveal func(redact.Kind, []string) bool) (*cleanFile, error) {
	f := &cleanFile{of: of}
	var err error
	if f.name, f.redacted, _, err = r.TextRevealing(ctx, path, nil); err != nil || of == nil {
		return f, err
	}
	text, out, shown, err := redactText(ctx, r, *of, revealIn(path, reveal))
	f.redacted, f.revealed, f.text = sum(f.redacted, out), shown, of
	if text != *of {
		f.text = &text
	}
	return f, err
}
