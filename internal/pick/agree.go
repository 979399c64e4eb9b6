package pick

import "slices"

// cover reports whether every list grants the place itself, and notes what matches.
func (w *walker) cover(here at, kind kind) bool {
	lists, last := 0, -1
	for _, i := range here.live {
		p := &w.allow[i]
		if len(p.steps) > here.depth {
			continue
		}
		if !p.deep && kind != scalar {
			w.met[i] = max(w.met[i], metContainer)
			continue
		}
		w.met[i] = metMatch
		if p.list != last { // live is in the order of lists
			lists, last = lists+1, p.list
		}
	}
	return lists == len(w.lists)
}

// nothingElse reports that a granted place can be taken as it is: no block is
// left that could name a part, no path that has yet to match.
func (w *walker) nothingElse(here at) bool {
	return len(here.bans) == 0 && !w.waiting(here)
}

func (w *walker) waiting(here at) bool {
	return slices.ContainsFunc(here.live, func(i int) bool {
		return len(w.allow[i].steps) > here.depth && w.met[i] != metMatch
	})
}

// follow pushes the allow paths that agree with one more step.
func (w *walker) follow(here at, name string, index int) {
	if index < 0 {
		name = Exact(name)
	}
	for _, i := range here.live {
		p := &w.allow[i]
		if len(p.steps) <= here.depth {
			if p.deep {
				w.live = append(w.live, i)
			}
			continue
		}
		if s := &p.steps[here.depth]; s.any || index < 0 && s.name == name {
			w.live = append(w.live, i)
		}
	}
}

// block reports whether a block names the place one step on, or else pushes
// the blocks that may name a part of it.
func (w *walker) block(here at, name string, index int) bool {
	if index < 0 {
		name = Loose(name)
	}
	for _, i := range here.bans {
		b := &w.blocks[i]
		if b.anywhere {
			if index < 0 && b.steps[0].loose == name {
				return true
			}
			w.bans = append(w.bans, i)
			continue
		}
		s := &b.steps[here.depth]
		if !s.any && (index >= 0 || s.loose != name) && (index < 0 || s.index != index) {
			continue
		}
		if len(b.steps) == here.depth+1 {
			return true
		}
		w.bans = append(w.bans, i)
	}
	return false
}

// match marks the allow paths that match in a place that is left out.
func (w *walker) match(v any, here at) {
	w.cover(here, kindOf(v))
	if !w.waiting(here) {
		return
	}
	on := func(v any, name string, index int) {
		live := len(w.live)
		w.follow(here, name, index)
		w.match(v, at{depth: here.depth + 1, live: w.live[live:]})
		w.live = w.live[:live]
	}
	switch v := v.(type) {
	case map[string]any:
		for name, one := range v {
			on(one, name, -1)
		}
	case []any:
		for i, one := range v {
			on(one, "", i)
		}
	}
}
