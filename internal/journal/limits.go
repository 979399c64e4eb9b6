package journal

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"time"
)

// UpdateLimits replaces what the processes that use an endpoint say of their calls by what update returns, unless it is the
// same; see [limit.Pool]. The time is that of the database, or of the host if the journal is a file.
//
// [limit.Pool]: https://pkg.go.dev/github.com/runteam/runteam/llm/limit#Pool
func (j *Journal) UpdateLimits(ctx context.Context, endpoint string, update func(now time.Time, stored []byte) []byte) error {
	leave, err := j.enter()
	if err != nil {
		return err
	}
	defer leave()
	endpoint = j.Masked(endpoint)
	news := false
	look := func(q Querier, lock string) (text []byte, err error) {
		var stored []byte
		var at int64
		err = queryRow(ctx, q, "select stored, coalesce("+j.store.db.Now()+", $1) from limits where endpoint = $2"+lock, []any{nanos(j.o.Now()), endpoint}, &stored, &at)
		if errors.Is(err, sql.ErrNoRows) {
			at, err = nanos(j.o.Now()), nil
		}
		if err != nil {
			return nil, err
		}
		text = update(fromNanos(at), stored)
		news = !bytes.Equal(text, stored)
		return text, nil
	}
	err = j.store.db.Read(ctx, func(q Querier) error {
		_, err := look(q, "")
		return err
	})
	if err != nil || !news {
		return j.fail("read", err)
	}
	return j.fail("write", j.store.db.Write(ctx, func(tx Tx, _ bool) error {
		if _, err := tx.ExecContext(ctx, "insert into limits (endpoint, stored) values ($1, '') on conflict do nothing", endpoint); err != nil {
			return err
		}
		text, err := look(tx, j.store.db.Lock())
		if err == nil {
			_, err = tx.ExecContext(ctx, "update limits set stored = $1 where endpoint = $2", string(text), endpoint)
		}
		return err
	}))
}
