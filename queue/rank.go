package queue

import "slices"

// rank orders all tasks for dispatch and fills the heap. Three stable counting
// passes, from the least to the most important criterion, keep it linear in
// tasks and edges.
func (q *Queue) rank() {
	n := len(q.tasks)
	slab := make([]int32, 3*n)
	order, spare, key := slab[:n:n], slab[n:2*n:2*n], slab[2*n:]
	for i := range order {
		order[i] = int32(i)
		key[i] = int32(q.def(i).Priority.Rank())
	}
	order, spare = sortDown(order, spare, key)
	for i := range key {
		key[i] = q.dependents(i)
	}
	order, spare = sortDown(order, spare, key)
	q.heights(key)
	order, _ = sortDown(order, spare, key)
	q.order = order
	q.stale = false
	q.fill()
}

// sortDown sorts tasks by key, the highest first and equal ones as they are,
// and returns the result and the other slice, which it has used as well.
func sortDown(tasks, spare, key []int32) (sorted, other []int32) {
	if len(tasks) == 0 {
		return tasks, spare
	}
	low, high := slices.Min(key), slices.Max(key)
	if low == high {
		return tasks, spare
	}
	next := make([]int32, high-low+1) // where the next task with this key goes, from the top
	for _, k := range key {
		next[high-k]++
	}
	sum := int32(0)
	for k := range next {
		next[k], sum = sum, sum+next[k]
	}
	for _, i := range tasks {
		slot := &next[high-key[i]]
		spare[*slot] = i
		*slot++
	}
	return spare, tasks
}

// fill writes every task's rank and makes the heaps anew. Ranks that rise are a heap.
func (q *Queue) fill() {
	for k := range q.agents {
		q.agents[k].parked = q.agents[k].parked[:0]
	}
	q.heap = slices.Grow(q.heap[:0], q.counts[pending])
	for rank, i := range q.order {
		e := &q.tasks[i]
		e.rank = int32(rank)
		if e.state == pending && e.flags&queued != 0 {
			q.heap = append(q.heap, int32(rank))
		}
	}
}

// dependents counts the direct dependents of a task.
func (q *Queue) dependents(i int) int32 {
	n := len(q.down[int32(i)])
	if i < q.base() {
		n += len(q.g.Downstream(i))
	}
	return int32(n)
}

// heights fills in the longest path from every task to a sink.
func (q *Queue) heights(height []int32) {
	if len(q.down) == 0 {
		for i := range height {
			height[i] = 0
			if i < q.base() {
				height[i] = int32(q.g.Height(i))
			}
		}
		return
	}
	clear(height)
	open := make([]int32, len(height)) // dependents not yet measured
	var line []int32
	for i := range open {
		if open[i] = q.dependents(i); open[i] == 0 {
			line = append(line, int32(i))
		}
	}
	raise := func(j, to int32) {
		height[j] = max(height[j], to)
		if open[j]--; open[j] == 0 {
			line = append(line, j)
		}
	}
	for head := 0; head < len(line); head++ {
		i := line[head]
		if int(i) < q.base() {
			for _, j := range q.g.Upstream(int(i)) {
				raise(j, height[i]+1)
			}
		}
		for _, j := range q.up[i] {
			raise(j, height[i]+1)
		}
	}
}

// A heap is a binary heap of ranks, the lowest first.
type heap []int32

func (h *heap) push(rank int32) {
	s := append(*h, rank)
	*h = s
	for k := len(s) - 1; k > 0; {
		parent := (k - 1) / 2
		if s[parent] <= rank {
			break
		}
		s[k], s[parent] = s[parent], rank
		k = parent
	}
}

func (h *heap) pop() int32 {
	s := *h
	best, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	k := 0 // the gap, which sinks until last fits
	for {
		child := 2*k + 1
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if child >= len(s) || last <= s[child] {
			break
		}
		s[k], k = s[child], child
	}
	if len(s) > 0 {
		s[k] = last
	}
	return best
}
