// Package quota divides the limits of an endpoint among the processes that call it.
//
// The processes share one text for each endpoint. Each says in it, every second, how much it uses and how much waits there, and
// reads from it how much it may use: its share. [Exchange] is both. It keeps what all processes have used within the last
// [Period], and may still use, at or below the limits, also while shares move from one to another. The time is that of the
// text's store.
package quota

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

const (
	// Period is how long a call counts: a minute, plus a second because calls take different times to reach the endpoint.
	Period = 61 * time.Second

	// ShareTime is how long the others keep the share of a process that says nothing.
	ShareTime = 5 * time.Second

	// MaxRefusal is how long an endpoint counts as refusing all calls after it refused one.
	MaxRefusal = 5 * time.Minute

	// renewal is how old what a process said may be, until it is said anew although its share stays the same. What a process
	// used since then is lost if it is killed.
	renewal = 900 * time.Millisecond
)

// The kinds of Amounts.
const (
	Requests = iota // that begin within a Period
	Tokens          // of the calls that begin within a Period
	Calls           // that run at once
	kinds
)

// Amounts has one number for each kind of limit.
type Amounts [kinds]int

// A Report is what a process says of its calls to an endpoint.
type Report struct {
	Limits  Amounts       // that are set in the process; zero for none
	Used    Amounts       // what counts now
	Began   []Began       // when that was
	Waiting Amounts       // what calls that wait will use
	Next    Amounts       // what the first of them will use
	Waited  time.Duration // for how long it has waited
	Share   Amounts       // that the process keeps to now
	Refused time.Duration // for how long the endpoint refuses calls from now on
	Last    bool          // the process gives back what it does not use, and says nothing more for now
}

// Began is what calls that began at about one time have used: requests and tokens.
type Began struct {
	Ago  time.Duration
	Used [2]int
}

// A Share is what a process may use.
type Share struct {
	Limits  Amounts       // that hold for all processes together: the lowest that is set in any of them; zero for none
	Most    Amounts       // what the process may use of them
	Wait    time.Duration // about how long the first waiting call has to wait for the others; zero if that is unknown
	Refused time.Duration // for how long the endpoint refuses calls from now on
}

// A state is the text of an endpoint. Times are nanoseconds since 1970.
type state struct {
	Processes map[string]process `json:"processes,omitempty"`
	Refused   int64              `json:"refused,omitempty"` // until when
}

// A process is what one has said.
type process struct {
	Seen   int64    `json:"seen"`
	Waits  int64    `json:"waits"` // since when its first call waits; Seen if none does
	Limits Amounts  `json:"limits"`
	Used   Amounts  `json:"used"`
	Demand Amounts  `json:"demand"` // used and waiting
	Next   Amounts  `json:"next"`
	Share  Amounts  `json:"share"`
	Held   Amounts  `json:"held"` // the most that can count, until the process says more
	Began  []counts `json:"began,omitempty"`
}

// counts are calls that began: when, how many requests, and how many tokens.
type counts [3]int64

// Exchange puts the report of a process into the text of an endpoint, and returns the text to store, and the share of the
// process. The text is the same if there is nothing new. One that cannot be read counts as empty.
func Exchange(stored []byte, now time.Time, id string, r *Report) ([]byte, Share) {
	var st state
	if json.Unmarshal(stored, &st) != nil || st.Processes == nil {
		st.Processes = make(map[string]process)
	}
	at := now.UnixNano()
	was, known := st.Processes[id]
	me := newProcess(at, r)
	me.Share = was.Share
	st.Processes[id] = me
	news := st.drop(at)
	if r.Refused > 0 {
		until := at + int64(min(r.Refused, MaxRefusal))
		news = news || until > st.Refused
		st.Refused = max(st.Refused, until)
	}
	s := Share{Limits: st.limits(at), Refused: time.Duration(max(0, st.Refused-at))}
	if s.Limits == (Amounts{}) {
		delete(st.Processes, id)
		return st.encode(stored, news || known), s
	}
	for kind, limit := range s.Limits {
		if limit > 0 {
			s.Most[kind] = st.share(at, id, kind, limit)
		}
		me.Held[kind] = max(me.Used[kind], r.Share[kind], s.Most[kind])
		if r.Last {
			s.Most[kind], me.Held[kind] = min(s.Most[kind], me.Used[kind]), me.Used[kind]
		}
	}
	me.Share = s.Most
	st.Processes[id] = me
	s.Wait = st.wait(&me, &s)
	news = news || !known || r.Last && was.Used != me.Used || at-was.Seen >= int64(renewal) || was.Share != me.Share || was.Held != me.Held || was.waits() != me.waits()
	return st.encode(stored, news), s
}

func newProcess(at int64, r *Report) process {
	p := process{Seen: at, Waits: at - int64(r.Waited), Limits: r.Limits, Used: r.Used, Next: r.Next}
	for kind := range p.Demand {
		p.Demand[kind] = r.Used[kind] + r.Waiting[kind]
	}
	for _, b := range r.Began {
		if b.Used != [2]int{} {
			p.Began = append(p.Began, counts{at - int64(b.Ago), int64(b.Used[Requests]), int64(b.Used[Tokens])})
		}
	}
	return p
}

// encode returns the text, or the stored one if there is nothing new.
func (st *state) encode(stored []byte, news bool) []byte {
	if !news {
		return stored
	}
	text, err := json.Marshal(st)
	if err != nil {
		return stored // it has numbers only
	}
	return text
}

// isLive reports whether the process has said something lately.
func (p *process) isLive(at int64) bool { return at-p.Seen <= int64(ShareTime) }

func (p *process) waits() bool { return p.Demand != p.Used }

// left returns how much of a kind still counts of a process that says nothing any more. It may have begun, after its last
// word, calls that waited then.
func (p *process) left(at int64, kind int) (n int) {
	if kind == Calls {
		return 0 // its calls have ended with it
	}
	for _, b := range p.Began {
		if at-b[0] < int64(Period) {
			n += int(b[1+kind])
		}
	}
	if at-p.Seen < int64(ShareTime+Period) {
		n += max(0, min(p.Share[kind], p.Demand[kind])-p.Used[kind])
	}
	return n
}

// drop removes the processes of which nothing counts any more, and reports whether there were some.
func (st *state) drop(at int64) (dropped bool) {
	for id, p := range st.Processes {
		if !p.isLive(at) && p.left(at, Requests) == 0 && p.left(at, Tokens) == 0 {
			delete(st.Processes, id)
			dropped = true
		}
	}
	return dropped
}

// limits returns the lowest limits that a live process has set.
func (st *state) limits(at int64) (lowest Amounts) {
	for _, p := range st.Processes {
		for kind, limit := range p.Limits {
			if limit > 0 && p.isLive(at) && (lowest[kind] == 0 || limit < lowest[kind]) {
				lowest[kind] = limit
			}
		}
	}
	return lowest
}

// share returns how much of a limit a process may use: what is fair, but no more than the others leave that hold more than is
// fair, or that come first.
func (st *state) share(at int64, id string, kind, limit int) int {
	var all []want
	left := limit
	for of, p := range st.Processes {
		if !p.isLive(at) {
			left -= p.left(at, kind)
			continue
		}
		all = append(all, want{id: of, used: p.Used[kind], demand: p.Demand[kind], next: p.Next[kind], held: p.Held[kind], waits: p.Waits, gives: p.Share[kind] < p.Used[kind]})
	}
	slices.SortFunc(all, want.compare)
	divide(left, all)
	mine := slices.IndexFunc(all, func(w want) bool { return w.id == id })
	for i, other := range all {
		switch {
		case i < mine:
			left -= max(other.held, other.gets)
		case i > mine:
			left -= other.held
		}
	}
	return max(0, min(all[mine].gets, left))
}

// A want is how much of a limit a process uses, would use in all, needs for its next call, and may use until it says more.
type want struct {
	id                       string
	used, demand, next, held int
	waits                    int64 // since when
	gives                    bool  // it uses more than its share
	gets                     int
}

// compare orders those first that have used least, then those that have waited longest. Who has begun to give something back
// goes on with that.
func (w want) compare(o want) int {
	given := func(w want) int {
		if w.gives {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(w.used, o.used), cmp.Compare(given(w), given(o)), cmp.Compare(w.waits, o.waits), cmp.Compare(w.id, o.id))
}

// parts is into how many steps per process a limit is divided.
const parts = 16

// divide gives each process as much as any other, but no more than it demands, and the first ones first. What no process
// demands is divided evenly, for the calls to come. A process gets what its next call needs as a whole.
func divide(left int, all []want) {
	for step := max(1, left/(parts*len(all))); left > 0; {
		var least *want
		for i := range all {
			if w := &all[i]; w.gets < w.demand && (least == nil || w.gets < least.gets) {
				least = w
			}
		}
		if least == nil {
			break
		}
		n := step
		if least.gets >= least.used {
			n = max(step, least.next)
		}
		n = min(n, least.demand-least.gets, left)
		least.gets += n
		left -= n
	}
	for i := range all {
		n := max(0, left) / (len(all) - i)
		all[i].gets += n
		left -= n
	}
}

// wait returns about how long it takes until the next call of a process fits beside what all have used; zero if that is unknown.
func (st *state) wait(me *process, s *Share) (longest time.Duration) {
	for kind := Requests; kind <= Tokens; kind++ {
		limit, next := s.Limits[kind], me.Next[kind]
		if limit == 0 || me.Used[kind]+next <= s.Most[kind] {
			continue
		}
		var all []counts
		excess := min(next, limit) - limit
		for _, p := range st.Processes {
			all = append(all, p.Began...)
		}
		slices.SortFunc(all, func(a, b counts) int { return cmp.Compare(a[0], b[0]) })
		for _, b := range all {
			excess += int(b[1+kind])
		}
		for _, b := range all {
			if excess <= 0 {
				break
			}
			if excess -= int(b[1+kind]); excess <= 0 {
				longest = max(longest, time.Duration(b[0]+int64(Period)-me.Seen))
			}
		}
	}
	return longest
}
