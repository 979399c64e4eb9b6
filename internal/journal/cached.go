package journal

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/record"
)

// CachedAnswers yields the reusable answers of other runs under a key, the newest first, with
// masked keys. It skips answers that have expired, that do not match their digests, or that
// the keys of the journal do not decrypt. An error ends the sequence.
func (r *Run) CachedAnswers(ctx context.Context, key record.Key) iter.Seq2[*record.AgentCall, error] {
	return func(yield func(*record.AgentCall, error) bool) {
		masked, before, now := r.j.vault.mask(key), int64(1)<<62, r.j.o.Now()
		for more := true; more; {
			batchRows, err := r.j.store.answers(ctx, masked, before)
			if err != nil {
				yield(nil, r.j.fail("read", err))
				return
			}
			for _, l := range batchRows {
				if before = l.n; l.run == r.row.n {
					continue
				}
				if !r.j.isWhole() || r.row.starter != "" { // that there is an equal prompt would tell one person of another's run
					other, err := r.j.find(ctx, l.id)
					if errors.Is(err, ErrUnknownRun) || err == nil && r.row.starter != "" && other.starter != r.row.starter {
						continue
					}
					if err != nil {
						yield(nil, err)
						return
					}
				}
				found, err := r.j.answersIn(l, masked)
				if err != nil {
					yield(nil, r.j.fail("read", err))
					return
				}
				for _, x := range slices.Backward(found) {
					if fresh(x, now) && !yield(x, nil) {
						return
					}
				}
			}
			more = len(batchRows) == pageSize
		}
	}
}

// answersIn returns the answers in a row to a prompt.
func (a *archive) answersIn(l batchRow, masked record.Key) (list []*record.AgentCall, err error) {
	if err := l.unpack(false); err != nil {
		return nil, err
	}
	d := &decoder{vault: a.vault, run: l.id}
	key := hex.AppendEncode(nil, masked[:])
	for kind, value := range record.SplitLines(l.text) {
		if kind != record.KindAgentCall || !bytes.Contains(value, key) {
			continue
		}
		x, err := d.exchange(value)
		if err != nil {
			return nil, err
		}
		if x.Reuse == masked && x.Reusable && x.Completed() {
			list = append(list, x)
		}
	}
	return list, nil
}

// fresh reports whether an answer is readable and has not expired.
func fresh(x *record.AgentCall, now time.Time) bool {
	if x.Result == nil || x.Missing != "" {
		return false
	}
	e, err := x.Result.Envelope()
	return err == nil && e.Genuine() == nil && e.Fresh(now) == nil
}
