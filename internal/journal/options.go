package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/runteam/runteam/label"
)

// Options configure a journal. The zero value stores only keyed digests of values above
// confidential, and has a chain of decisions without a key.
type Options struct {
	Dir      workdir.Dir      // where the path of the journal starts; empty means the working directory
	Key      []byte           // 32 bytes that encrypt values above confidential; nil stores only keyed digests of these
	AuditKey []byte           // at least 16 bytes that sign the chain of decisions; nil means none
	ReadOnly bool             // writes nothing; the folder need not be writable
	Now      func() time.Time // nil means time.Now
	Holder   *Holder          // the process that leases runs; nil means this one
	Logger   *slog.Logger     // nil discards

	// Workspaces is a folder for the workspaces of runs, which other journals and the processes of other hosts may share;
	// empty means one beside the file or, of a database, in the user's cache.
	Workspaces string

	// UseReserve lets [Open] use the disk space that is reserved for [Journal.Remove] if the
	// disk is full, so that runs can be removed to make room.
	UseReserve bool

	// Driver is the name of a driver of SQLite in database/sql; empty means sqlite. Tests count rows with another one.
	Driver string

	// EncryptFrom is the lowest label of values that are encrypted under Key; nil means secret. It holds for what is
	// written from now on, and needs a Key.
	EncryptFrom *label.Classification

	// Closing Hurry limits each wait for a file that other processes lock, or for a server, to 1 s. Otherwise
	// a wait takes up to 30 s.
	Hurry <-chan struct{}

	busy  time.Duration // the longest wait for a locked file; zero means 30 s
	pages int           // how many pages the file may have; zero means any number
}

// Check returns an error if Key has another length than [KeyBytes], or AuditKey is too short;
// the error names both. [Open] returns the same error.
func (o *Options) Check() error {
	var problems []string
	if err := checkKey(o.Key); err != nil {
		problems = append(problems, err.Error())
	}
	if c := o.EncryptFrom; c != nil && !c.Valid() {
		problems = append(problems, fmt.Sprintf("EncryptFrom is %v; use one of %s", *c, strings.Join(label.Classifications(), ", ")))
	} else if c != nil && o.Key == nil && !o.ReadOnly {
		problems = append(problems, fmt.Sprintf("EncryptFrom is %v, and there is no Key to encrypt under; set Key to %d bytes, or leave EncryptFrom out", *c, KeyBytes))
	}
	if n := len(o.AuditKey); n > 0 && n < audit.MinKey {
		problems = append(problems, fmt.Sprintf("AuditKey has %s; use at least %d", bytesize.Text(n), audit.MinKey))
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// checked returns a copy with every default filled in, or the error of [Options.Check].
func (o Options) checked() (Options, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Holder == nil {
		o.Holder = new(ThisHolder())
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Driver == "" {
		o.Driver = "sqlite"
	}
	if at, err := o.Dir.Abs(o.Workspaces); err == nil && o.Workspaces != "" {
		o.Workspaces = at
	}
	if o.busy == 0 {
		o.busy = 30 * time.Second
	}
	return o, o.Check()
}
