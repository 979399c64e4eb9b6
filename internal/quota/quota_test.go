package quota_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/quota"
)

// A process uses its share as fast as it can, by its own window.
type process struct {
	id      string
	share   quota.Share
	taken   time.Time // when it got its share; zero if it has none
	began   []time.Time
	backlog int
	killed  bool
	said    int // how many calls the others know of
}

func (p *process) used(now time.Time) (n int) {
	for _, at := range p.began {
		if now.Sub(at) < quota.Period {
			n++
		}
	}
	return n
}

// work begins the calls that wait, as far as the share allows.
func (p *process) work(now time.Time) {
	if p.killed || now.Sub(p.taken) > quota.ShareTime {
		return
	}
	for p.backlog > 0 && p.used(now) < p.share.Most[quota.Requests] {
		p.began = append(p.began, now)
		p.backlog--
	}
}

func (p *process) report(now time.Time, limit int) *quota.Report {
	r := &quota.Report{Limits: quota.Amounts{limit}, Used: quota.Amounts{p.used(now)}, Waiting: quota.Amounts{p.backlog}}
	if p.backlog > 0 {
		r.Next = quota.Amounts{1}
	}
	if now.Sub(p.taken) <= quota.ShareTime {
		r.Share = p.share.Most
	}
	for _, at := range p.began {
		if now.Sub(at) < quota.Period {
			r.Began = append(r.Began, quota.Began{Ago: now.Sub(at), Used: [2]int{1, 0}})
		}
	}
	return r
}

// look has a process say what it does and take its share, and may let it work meanwhile.
func (p *process) look(stored []byte, now time.Time, limit int, works bool) []byte {
	before, said := p.report(now, limit), len(p.began)
	if works {
		p.work(now)
	}
	text, share := quota.Exchange(stored, now, p.id, before)
	if string(text) != string(stored) {
		p.said = said
	}
	p.share, p.taken = share, now
	return text
}

// TestProcessesStayWithinTheLimit lets processes work, look at their shares, get more to do, and die, in any order and at any
// time. Together they never begin more calls within a period than the limit, but for what one began just before it died.
func TestProcessesStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(r, "limit")
		all := make([]*process, rapid.IntRange(1, 5).Draw(r, "processes"))
		for i := range all {
			all[i] = &process{id: fmt.Sprint("p", i)}
		}
		var stored []byte
		now := time.Unix(1_700_000_000, 0)
		for range rapid.IntRange(1, 300).Draw(r, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(r, "ms")) * time.Millisecond)
			for _, p := range all {
				if !p.killed && !p.taken.IsZero() && now.Sub(p.taken) > 2*time.Second {
					stored = p.look(stored, now, limit, false)
				}
			}
			p := all[rapid.IntRange(0, len(all)-1).Draw(r, "process")]
			if p.killed {
				continue
			}
			switch rapid.IntRange(0, 9).Draw(r, "step") {
			case 0:
				p.killed, p.began = true, p.began[:p.said]
			case 1, 2:
				p.backlog += rapid.IntRange(0, 30).Draw(r, "more")
			case 3, 4, 5, 6:
				stored = p.look(stored, now, limit, rapid.Bool().Draw(r, "works meanwhile"))
			default:
				p.work(now)
			}
			sum := 0
			for _, p := range all {
				sum += p.used(now)
			}
			require.LessOrEqual(r, sum, limit)
		}
	})
}

// TestNeedsAreMet lets processes report their needs until nothing changes. They get equal parts, but no more than they need
// while another one needs more, and together all of the limit.
func TestNeedsAreMet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit int
		needs []int
		want  []int
	}{
		{600, []int{1000}, []int{600}},
		{600, []int{0}, []int{600}},
		{600, []int{1000, 1000, 1000, 1000}, []int{150, 150, 150, 150}},
		{600, []int{10, 1000, 1000}, []int{10, 295, 295}},
		{600, []int{0, 100}, []int{250, 350}},
		{600, []int{100, 100, 100}, []int{200, 200, 200}},
		{3, []int{5, 5, 5}, []int{1, 1, 1}},
	} {
		var stored []byte
		got := make([]int, len(tt.needs))
		now := time.Unix(1_700_000_000, 0)
		for range 6 {
			for i, n := range tt.needs {
				now = now.Add(100 * time.Millisecond)
				var s quota.Share
				stored, s = quota.Exchange(stored, now, fmt.Sprint("p", i), &quota.Report{Limits: quota.Amounts{tt.limit}, Waiting: quota.Amounts{n}, Next: quota.Amounts{min(n, 1)}, Share: quota.Amounts{got[i]}})
				got[i] = s.Most[quota.Requests]
			}
		}
		require.InDeltaSlice(t, tt.want, got, float64(tt.limit)/32, "%d for %v", tt.limit, tt.needs)
	}
}

// TestTextStaysTheSameWithoutNews checks what makes the text of an endpoint change.
func TestTextStaysTheSameWithoutNews(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	r := quota.Report{Limits: quota.Amounts{60}}
	first, share := quota.Exchange(nil, now, "a", &r)
	require.NotEmpty(t, first)
	r.Share = share.Most
	same, _ := quota.Exchange(first, now.Add(500*time.Millisecond), "a", &r)
	require.Equal(t, first, same)
	renewed, _ := quota.Exchange(first, now.Add(time.Second), "a", &r)
	require.NotEqual(t, first, renewed)
	r.Refused = time.Hour
	refused, share := quota.Exchange(first, now.Add(500*time.Millisecond), "a", &r)
	require.NotEqual(t, first, refused)
	require.Equal(t, quota.MaxRefusal, share.Refused, "an endpoint is believed for so long")

	r = quota.Report{Limits: quota.Amounts{60}, Used: quota.Amounts{5}, Share: r.Share, Last: true}
	last, _ := quota.Exchange(first, now.Add(500*time.Millisecond), "a", &r)
	require.NotEqual(t, first, last, "what a process has used is said before it is silent")

	none, share := quota.Exchange(nil, now, "a", &quota.Report{})
	require.Empty(t, none)
	require.Equal(t, quota.Share{}, share)
}

// FuzzExchange checks that no stored text breaks a process, or lends it more than the limit.
func FuzzExchange(f *testing.F) {
	f.Add([]byte(`{"processes":{"b":{"seen":1,"share":[-1,0,9],"held":[99],"began":[[0,-5,1]]}},"refused":-1}`))
	f.Add([]byte(`{"processes":{"a":null}}`))
	f.Fuzz(func(t *testing.T, stored []byte) {
		text, s := quota.Exchange(stored, time.Unix(1, 0), "a", &quota.Report{Limits: quota.Amounts{10, 100, 2}, Waiting: quota.Amounts{3, 30, 3}, Next: quota.Amounts{1, 10, 1}})
		require.True(t, json.Valid(text))
		for kind, most := range s.Most {
			require.GreaterOrEqual(t, most, 0)
			require.LessOrEqual(t, most, s.Limits[kind])
		}
	})
}
