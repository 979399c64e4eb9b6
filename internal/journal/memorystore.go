package journal

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// memory is a store that is gone with its process.
type memory struct {
	mu        sync.Mutex // guards all below
	list      []*runRow  // in the order in which they began
	batchRows map[int64][]kept
	turns     map[int64]turn // the last of each run
	leases    map[int64]lease
	n         int64 // of the last batch
	number    int64 // of the last run
	gone      bool
}

// kept is a batch with its number.
type kept struct {
	n int64
	*batch
}

func newMemory() *memory {
	return &memory{batchRows: map[int64][]kept{}, turns: map[int64]turn{}, leases: map[int64]lease{}}
}

// enter locks the memory, unless it is closed or the context has ended.
func (m *memory) enter(ctx context.Context) (leave func(), err error) {
	m.mu.Lock()
	if err := ended(ctx); err != nil || m.gone {
		m.mu.Unlock()
		return nil, cmp.Or(err, ErrClosed)
	}
	return m.mu.Unlock, nil
}

func (m *memory) head(ctx context.Context) ([]byte, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if len(m.list) == 0 {
		return nil, nil
	}
	batchRows := m.batchRows[m.list[len(m.list)-1].n]
	return batchRows[len(batchRows)-1].state, nil
}

func (m *memory) begin(ctx context.Context, r *runRow, b *batch) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if slices.ContainsFunc(m.list, func(o *runRow) bool { return o.id == r.id }) {
		return errTaken
	}
	m.number++
	r.n, b.run = m.number, m.number
	m.list = append(m.list, r)
	m.leases[r.n] = b.lease
	m.add(b)
	return nil
}

func (m *memory) commit(ctx context.Context, list []*batch) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, b := range list {
		is, held := m.leases[b.run]
		if b.lost = !held || !is.same(&b.lease); !b.lost {
			m.add(b)
		}
	}
	return nil
}

func (m *memory) add(b *batch) {
	if !b.empty {
		m.n++
		m.batchRows[b.run] = append(m.batchRows[b.run], kept{m.n, b})
	}
	if n := len(b.turns); n > 0 {
		m.turns[b.run] = b.turns[n-1]
	}
	if b.release {
		delete(m.leases, b.run)
	}
}

func (m *memory) runs(ctx context.Context, prefix string, most int) (list []row, err error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, r := range slices.Backward(m.list) {
		if strings.HasPrefix(r.id, prefix) && len(list) != most {
			list = append(list, row{runRow: *r, held: m.held(r.n), turn: m.turns[r.n]})
		}
	}
	return list, nil
}

// held returns a copy of the lease of a run.
func (m *memory) held(run int64) *lease {
	if l, ok := m.leases[run]; ok {
		return &l
	}
	return nil
}

func (m *memory) page(ctx context.Context, run, after int64, _ bool) (list []batchRow, err error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	batchRows := m.batchRows[run]
	first, _ := slices.BinarySearchFunc(batchRows, after+1, func(k kept, n int64) int { return cmp.Compare(k.n, n) })
	for _, k := range batchRows[first:min(first+pageSize, len(batchRows))] {
		list = append(list, batchRow{n: k.n, run: run, lines: k.lines})
	}
	return list, nil
}

func (m *memory) marked(ctx context.Context, run int64) (list []markedRow, err error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, k := range m.batchRows[run] {
		list = append(list, markedRow{n: k.n, marks: k.marks, marked: true})
	}
	return list, nil
}

func (m *memory) batchRow(ctx context.Context, n int64) (l batchRow, err error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return l, err
	}
	defer leave()
	for run, batchRows := range m.batchRows {
		if i, found := slices.BinarySearchFunc(batchRows, n, func(k kept, n int64) int { return cmp.Compare(k.n, n) }); found {
			return batchRow{n: n, run: run, lines: batchRows[i].lines}, nil
		}
	}
	return l, errRow
}

func (m *memory) last(ctx context.Context, run int64) (n int64, at time.Time, state []byte, err error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return 0, at, nil, err
	}
	defer leave()
	for _, k := range m.batchRows[run] {
		if k.at.After(at) {
			at = k.at
		}
		n, state = k.n, k.state
	}
	return n, at, state, nil
}

func (m *memory) answers(ctx context.Context, key [32]byte, before int64) (list []batchRow, err error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, r := range m.list {
		for _, k := range m.batchRows[r.n] {
			if k.n < before && slices.Contains(k.answers, key) {
				list = append(list, batchRow{n: k.n, run: r.n, id: r.id, lines: k.lines})
			}
		}
	}
	slices.SortFunc(list, func(a, b batchRow) int { return cmp.Compare(b.n, a.n) })
	return list[:min(len(list), pageSize)], nil
}

func (m *memory) lease(ctx context.Context, run int64) (*lease, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return m.held(run), nil
}

func (m *memory) swapLease(ctx context.Context, run int64, old, now *lease) (bool, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	is, held := m.leases[run]
	if held != (old != nil) || held && !is.same(old) {
		return false, nil
	}
	if now == nil {
		delete(m.leases, run)
	} else {
		m.leases[run] = *now
	}
	return true, nil
}

func (m *memory) remove(ctx context.Context, runs []row, idle func(*lease) bool) (gone []row, bytes int64, err error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	for _, r := range runs {
		if !idle(m.held(r.n)) {
			continue
		}
		before := len(m.list)
		if m.list = slices.DeleteFunc(m.list, func(o *runRow) bool { return o.n == r.n }); len(m.list) < before {
			gone = append(gone, r)
		}
		for _, k := range m.batchRows[r.n] {
			bytes += int64(len(k.lines.kept) + len(k.lines.rest))
		}
		delete(m.batchRows, r.n)
		delete(m.turns, r.n)
		delete(m.leases, r.n)
	}
	return gone, bytes, nil
}

func (m *memory) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = true
	return nil
}
