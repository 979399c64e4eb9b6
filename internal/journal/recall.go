package journal

import (
	"bytes"
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/record"
)

// Recall returns what other runs were answered under a key of reuse, the newest
// first: of what can be reused that which is whole, not expired, and can be
// read with the keys of the journal. Its keys are masked.
func (r *Run) Recall(ctx context.Context, key record.Key) (list []record.AgentCall, err error) {
	masked, before, now := r.j.vault.mask(key), int64(1)<<62, r.j.o.Now()
	for {
		leaves, err := r.j.store.answers(ctx, masked, before)
		if err != nil {
			return nil, r.j.fail("read", err)
		}
		for _, l := range leaves {
			before = l.n
			if l.run == r.row.n {
				continue
			}
			found, err := r.j.answersIn(l, masked)
			if err != nil {
				return nil, r.j.fail("read", err)
			}
			for _, x := range slices.Backward(found) {
				if fresh(&x, now) {
					list = append(list, x)
				}
			}
		}
		if len(leaves) < pageSize {
			return list, nil
		}
	}
}

// answersIn returns what a row has that was answered to a prompt.
func (j *Journal) answersIn(l leaf, masked record.Key) (list []record.AgentCall, err error) {
	lines, err := l.read(false)
	if err != nil {
		return nil, err
	}
	d := &decoder{vault: j.vault, run: l.id}
	key := hex.AppendEncode(nil, masked[:])
	for line := range bytes.Lines(lines) {
		kind, value := split(line)
		if kind != kindExchange || !bytes.Contains(value, key) {
			continue
		}
		x, err := d.exchange(value)
		if err != nil {
			return nil, err
		}
		if x.Reuse == masked && x.Reusable && x.Completed() {
			list = append(list, *x)
		}
	}
	return list, nil
}

// fresh reports whether the answer of an exchange can be had and may be read now.
func fresh(x *record.AgentCall, now time.Time) bool {
	if x.Result == nil || x.Missing != "" {
		return false
	}
	e, err := x.Result.Envelope()
	return err == nil && e.Genuine() == nil && e.Fresh(now) == nil
}
