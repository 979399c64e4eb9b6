package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/runteam/runteam/internal/journal"
)

// A target is a database for a copy of a journal.
type target struct {
	config *pgx.ConnConfig
	name   string
	o      journal.Options
}

// InDatabase returns the target of a copy that goes to a database.
func InDatabase(address string, o journal.Options) (journal.CopyTarget, error) {
	config, err := parse(address)
	if err != nil {
		return nil, &journal.Error{Op: "open", Path: "in PostgreSQL", Err: err}
	}
	return target{config, Name(config), o}, nil
}

// Fill creates the tables and adds the rows in one transaction, so there are all or none.
func (t target) Fill(ctx context.Context, digestKey []byte, do func(journal.Tx) error) error {
	d, err := newDatabase(t.config, t.name, t.o, patience)
	if err == nil {
		err = errors.Join(d.Explain(d.fill(ctx, digestKey, do)), d.Close())
	}
	if err != nil {
		return &journal.Error{Op: "copy to", Path: t.name, Err: err}
	}
	return nil
}

func (d *database) fill(ctx context.Context, digestKey []byte, do func(journal.Tx) error) error {
	tx, err := d.begin(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // of what is not committed
	if err := d.createIn(ctx, tx, digestKey); err != nil {
		return err
	}
	key, err := d.loadFrom(ctx, tx)
	if err == nil {
		err = journal.CheckEmpty(ctx, tx, key, digestKey)
	}
	if err == nil {
		err = do(tx)
	}
	for _, table := range []string{"runs", "batches", "turns", "commands"} {
		if err == nil { // the next number is behind the copied ones
			_, err = tx.ExecContext(ctx, "select setval(pg_get_serial_sequence('"+table+"', 'n'), max(n)) from "+table+" having count(*) > 0")
		}
	}
	if err != nil {
		return err
	}
	if err = tx.Commit(); err != nil && !isAnswered(err) {
		err = fmt.Errorf("%w: it has all of the copy or nothing (%w)", journal.ErrUncertain, err)
	}
	return err
}
