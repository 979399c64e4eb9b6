package journal

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// runs returns at most so many runs whose IDs begin with prefix, the newest first; all of them if most is
// negative. Other runs than those that a view has are not there.
func (c *catalog) runs(ctx context.Context, prefix string, most int) ([]row, error) {
	list, err := c.store.runs(ctx, prefix, most, c.views)
	if err != nil {
		return nil, err
	}
	found := len(list)
	seen, err := c.visible(ctx, list)
	if err != nil {
		return nil, err
	}
	if len(seen) < found && found == most { // there may be more behind those that were left out
		all, err := c.runs(ctx, prefix, all)
		return all[:min(len(all), most)], err
	}
	return seen, nil
}

// Label returns the label of a run, which is named as for [Journal.Find]: the highest label of what its caller may see
// of it, as the checks before it began bound that. A run of an earlier version has the clearance of its caller, or is
// confidential if that is not known.
func (c *catalog) Label(ctx context.Context, run string) (label.Classification, error) {
	r, err := c.find(ctx, run)
	if err != nil {
		return label.Secret, err
	}
	level, err := c.labelOf(ctx, &r)
	return level, c.fail("read", err)
}

// A labelKey identifies what the label of a run depends on: a process that resumes it may raise it.
type labelKey struct {
	run   int64
	turns int
}

// labelOf returns the label of a run. One that an earlier version wrote has it in its lines only.
func (c *catalog) labelOf(ctx context.Context, r *row) (level label.Classification, err error) {
	if r.label != nil {
		return *r.label, nil
	}
	key := labelKey{r.n, r.turns}
	if known, ok := c.labels.Load(key); ok {
		return known.(label.Classification), nil
	}
	if level, err = c.store.storedLabel(ctx, r.n); err == nil {
		c.labels.Store(key, level)
	}
	return level, err
}

// storedLabel returns the label that the lines of a run give: the highest that one of its processes began with,
// confidential if there is none, and secret if a line is damaged.
func (s *store) storedLabel(ctx context.Context, run int64) (level label.Classification, err error) {
	rows, err := s.marked(ctx, run)
	if err != nil {
		return label.Secret, err
	}
	found := false
	level = label.Public
	for i := range rows {
		if !rows[i].about() {
			continue
		}
		l, err := s.batchRow(ctx, rows[i].n, false)
		if errors.Is(err, errRow) {
			return label.Secret, nil
		}
		if err != nil {
			return label.Secret, err
		}
		for kind, value := range record.SplitLines(l.text) {
			if kind != record.KindRunStart {
				continue
			}
			var start record.RunStart
			if json.Unmarshal(value, &start) != nil {
				return label.Secret, nil
			}
			found, level = true, level.Join(start.StoredLabel())
		}
	}
	if !found {
		return label.Confidential, nil
	}
	return level, nil
}
