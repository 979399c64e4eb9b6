package limit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callwait"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/limit"
)

// A pool is in memory, has a clock that is wrong, and answers after its latency.
type pool struct {
	latency time.Duration

	mu    sync.Mutex
	away  bool
	texts map[string][]byte
	looks int
	wrote int
}

var errAway = errors.New("the pool is away")

func (p *pool) UpdateLimits(ctx context.Context, endpoint string, update func(time.Time, []byte) []byte) error {
	time.Sleep(p.latency)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		return errAway
	}
	if p.texts == nil {
		p.texts = make(map[string][]byte)
	}
	was := p.texts[endpoint]
	text := update(time.Now().Add(-time.Hour), was)
	p.looks++
	if string(text) != string(was) {
		p.wrote++
	}
	p.texts[endpoint] = text
	return ctx.Err()
}

func (p *pool) setAway(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

// A process makes calls to a server until it is killed.
type process struct {
	limits limit.Group
	model  llm.Model
	tokens int // the estimate of a call
	ctx    context.Context
	kill   context.CancelFunc
	leave  func()
	wg     sync.WaitGroup

	mu    sync.Mutex
	began []time.Time
	errs  []error
}

func start(t *testing.T, p limit.Pool, srv *server, l limit.Limits) *process {
	one := &process{tokens: 100}
	one.limits.Set(srv.url, l)
	one.leave = one.limits.Share(p)
	one.model = one.limits.Model(seen{srv, one}, 0)
	one.ctx, one.kill = context.WithCancel(t.Context())
	return one
}

// seen counts the calls of a process.
type seen struct {
	*server
	by *process
}

func (s seen) Call(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	s.by.mu.Lock()
	s.by.began = append(s.by.began, time.Now())
	s.by.mu.Unlock()
	return s.server.Call(ctx, req, emit)
}

// callers make calls one after the other, until the process is killed.
func (o *process) callers(n int) {
	for range n {
		o.wg.Go(func() {
			for o.ctx.Err() == nil {
				o.call()
			}
		})
	}
}

func (o *process) call() {
	_, err := o.model.Call(o.ctx, llm.Request{Settings: llm.Settings{MaxTokens: o.tokens}}, nil)
	if err != nil && o.ctx.Err() == nil {
		o.mu.Lock()
		o.errs = append(o.errs, err)
		o.mu.Unlock()
	}
}

// between returns how many calls began within a time.
func (o *process) between(from, to time.Time) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, at := range o.began {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// end kills processes and waits for them.
func end(t *testing.T, all ...*process) {
	for _, one := range all {
		one.kill()
	}
	for _, one := range all {
		one.wg.Wait()
		require.Empty(t, one.errs)
	}
	time.Sleep(5 * time.Second) // until they have said so
	synctest.Wait()
}

// TestProcessesShareLimits lets four processes call a server that refuses what is above its limit in any minute. They use nearly
// all of it, and hardly a call is refused, whatever each of them needs.
func TestProcessesShareLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		limits   limit.Limits
		callers  [4]int
		latency  time.Duration // of calls
		distance time.Duration // of the pool
	}{
		{"equal", limit.Limits{RequestsPerMinute: 200}, [4]int{50, 50, 50, 50}, time.Second, 5 * time.Millisecond},
		{"long calls", limit.Limits{RequestsPerMinute: 200}, [4]int{60, 60, 60, 60}, 20 * time.Second, 5 * time.Millisecond},
		{"one needs little", limit.Limits{RequestsPerMinute: 200}, [4]int{1, 50, 50, 50}, 2 * time.Second, 5 * time.Millisecond},
		{"one needs nearly all", limit.Limits{RequestsPerMinute: 200}, [4]int{1, 200, 1, 1}, 5 * time.Second, 5 * time.Millisecond},
		{"a far pool", limit.Limits{RequestsPerMinute: 200}, [4]int{50, 50, 50, 50}, time.Second, 300 * time.Millisecond},
		{"a low limit", limit.Limits{RequestsPerMinute: 30}, [4]int{5, 5, 5, 5}, time.Second, 5 * time.Millisecond},
		{"less than processes", limit.Limits{RequestsPerMinute: 3}, [4]int{2, 2, 2, 2}, time.Second, 5 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := &server{url: "http://a/v1", most: tt.limits.RequestsPerMinute, period: time.Minute, latency: tt.latency}
				p := &pool{latency: tt.distance}
				var all []*process
				begun := time.Now()
				for _, n := range tt.callers {
					one := start(t, p, srv, tt.limits)
					one.callers(n)
					all = append(all, one)
				}
				const minutes = 4
				time.Sleep(minutes * time.Minute)
				synctest.Wait()
				used := len(srv.began)
				end(t, all...)
				require.GreaterOrEqual(t, 100*used, 90*minutes*srv.most, "of the limit")
				require.LessOrEqual(t, 100*srv.refused, used, "refused")
				for i, one := range all {
					if tt.callers[i] == tt.callers[(i+1)%4] {
						require.InDelta(t, one.between(begun, time.Now()), all[(i+1)%4].between(begun, time.Now()), float64(2*srv.most), "as much as the other")
					}
				}
				t.Logf("%.1f %% of the limit used, %d of %d refused, %d looks, %d stored", 100*float64(used)/float64(minutes*srv.most), srv.refused, used, p.looks, p.wrote)
			})
		})
	}
}

// TestNeedsOfProcessesChange lets processes come, go, and need more and less at random. The server refuses no call.
func TestNeedsOfProcessesChange(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				l := limit.Limits{RequestsPerMinute: 1 + rng.IntN(60)}
				srv := &server{url: "http://a/v1", most: l.RequestsPerMinute, period: time.Minute, latency: time.Duration(rng.IntN(5000)) * time.Millisecond}
				p := &pool{latency: time.Duration(rng.IntN(200)) * time.Millisecond}
				all := make([]*process, 1+rng.IntN(6))
				for i := range all {
					all[i] = start(t, p, srv, l)
				}
				for range 40 {
					one := all[rng.IntN(len(all))]
					for range rng.IntN(2 * srv.most) {
						one.wg.Go(one.call)
					}
					time.Sleep(time.Duration(rng.IntN(15000)) * time.Millisecond)
				}
				end(t, all...)
				require.Zero(t, srv.refused, "of %d", len(srv.began))
			})
		})
	}
}

// TestShareOfKilledProcessReturns kills a process. The others use its share within 10 seconds, as far as its calls of the last
// minute leave it.
func TestShareOfKilledProcessReturns(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]limit.Limits{"at once": {MaxConcurrency: 6}, "per minute": {RequestsPerMinute: 200}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := &server{url: "http://a/v1", latency: time.Second, most: l.RequestsPerMinute, period: time.Minute}
				p := &pool{latency: 5 * time.Millisecond}
				one, other := start(t, p, srv, l), start(t, p, srv, l)
				one.callers(10)
				other.callers(10)
				time.Sleep(150 * time.Second)
				one.kill()
				time.Sleep(10 * time.Second)
				now := time.Now()
				time.Sleep(time.Minute)
				got := other.between(now, time.Now())
				end(t, one, other)
				require.LessOrEqual(t, srv.atOnce, max(l.MaxConcurrency, 20))
				require.GreaterOrEqual(t, got, max(l.RequestsPerMinute, 60*l.MaxConcurrency)*9/10)
				require.Zero(t, srv.refused)
			})
		})
	}
}

// TestSharedConcurrency checks that no more calls run at once than the limit says, in all processes together, and that all of
// them get on.
func TestSharedConcurrency(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 3, 10} {
		synctest.Test(t, func(t *testing.T) {
			srv := &server{url: "http://a/v1", latency: 2 * time.Second}
			p := &pool{latency: 5 * time.Millisecond}
			var all []*process
			begun := time.Now()
			for range 4 {
				one := start(t, p, srv, limit.Limits{MaxConcurrency: most})
				one.callers(most)
				all = append(all, one)
			}
			time.Sleep(2 * time.Minute)
			end(t, all...)
			require.Equal(t, most, srv.atOnce)
			for i := range all {
				require.GreaterOrEqual(t, all[i].between(begun, time.Now()), 60*most/4/2)
			}
		})
	}
}

// TestSharedTokens checks that calls whose estimate is a large part of the limit get their turn in each process.
func TestSharedTokens(t *testing.T) {
	t.Parallel()
	for tokens, callers := range map[int]int{900: 4, 2500: 4, 9000: 1} {
		synctest.Test(t, func(t *testing.T) {
			srv := &server{url: "http://a/v1", latency: 2 * time.Second}
			p := &pool{latency: 5 * time.Millisecond}
			var all []*process
			begun := time.Now()
			for range 4 {
				one := start(t, p, srv, limit.Limits{TokensPerMinute: 3000})
				one.tokens = tokens
				one.callers(callers)
				all = append(all, one)
			}
			time.Sleep(4 * time.Minute)
			end(t, all...)
			for i := range all {
				require.NotZero(t, all[i].between(begun, time.Now()), "%d tokens", tokens)
			}
			require.LessOrEqual(t, srv.mostIn(time.Minute)*15, 3000)
			t.Logf("%d tokens: %d calls", tokens, len(srv.began))
		})
	}
}

// TestRetryAfterReachesOtherProcesses checks that no process calls an endpoint that asked another one to wait.
func TestRetryAfterReachesOtherProcesses(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]limit.Limits{"no limits": {}, "limits": {RequestsPerMinute: 6000}} {
		synctest.Test(t, func(t *testing.T) {
			srv := &server{url: "http://a/v1", latency: 100 * time.Millisecond}
			p := &pool{latency: 20 * time.Millisecond}
			one, other := start(t, p, srv, l), start(t, p, srv, l)
			other.callers(5)
			time.Sleep(10 * time.Second)
			srv.mu.Lock()
			srv.most, srv.period, srv.after = len(srv.began), time.Hour, 40*time.Second
			srv.mu.Unlock()
			one.wg.Go(one.call)
			time.Sleep(200 * time.Millisecond)
			synctest.Wait()
			srv.mu.Lock()
			srv.most = 0
			srv.mu.Unlock()
			refused := time.Now()
			time.Sleep(time.Minute)
			end(t, one, other)
			require.Zero(t, other.between(refused.Add(time.Second), refused.Add(39*time.Second)), name)
			require.NotZero(t, other.between(refused.Add(40*time.Second), refused.Add(time.Minute)), name)
		})
	}
}

// TestShareIsKeptWithoutPool checks that a process that cannot reach the pool keeps its share, and does not get more.
func TestShareIsKeptWithoutPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := &server{url: "http://a/v1", latency: time.Second, most: 100, period: time.Minute}
		p := &pool{latency: 5 * time.Millisecond}
		one, other := start(t, p, srv, limit.Limits{RequestsPerMinute: 100}), start(t, p, srv, limit.Limits{RequestsPerMinute: 100})
		one.callers(20)
		other.callers(20)
		time.Sleep(5 * time.Minute)
		p.setAway(true)
		from := time.Now()
		time.Sleep(time.Minute)
		other.kill()
		time.Sleep(9 * time.Minute)
		got := one.between(from, time.Now())
		require.InDelta(t, 500, got, 50, "half of the limit")
		p.setAway(false)
		time.Sleep(time.Minute)
		from = time.Now()
		time.Sleep(5 * time.Minute)
		got = one.between(from, time.Now())
		end(t, one, other)
		require.GreaterOrEqual(t, got, 450, "all of it")
		require.Zero(t, srv.refused)
	})
}

// TestProcessWithoutShareWaits checks that no call begins before a share is known, and that an idle process asks for it anew.
func TestProcessWithoutShareWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, p := &server{url: "http://a/v1"}, &pool{away: true}
		one := start(t, p, srv, limit.Limits{RequestsPerMinute: 4})
		one.wg.Go(one.call)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, srv.began)
		p.setAway(false)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, srv.began, 1)

		other := start(t, p, srv, limit.Limits{RequestsPerMinute: 4})
		for range 10 {
			other.wg.Go(other.call)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, srv.began, 4, "what the other has used counts")
		one.call()
		time.Sleep(4 * time.Minute)
		end(t, one, other)
		require.Len(t, srv.began, 12)
		require.LessOrEqual(t, srv.mostIn(time.Minute), 4)
	})
}

// TestProcessesFollowEachOther checks that a process that has left, or only has no calls, holds no other one up, and that what
// it used counts.
func TestProcessesFollowEachOther(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]time.Duration{"left": 1100 * time.Millisecond, "idle": 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			srv, p := &server{url: "http://a/v1", latency: time.Second}, &pool{latency: 5 * time.Millisecond}
			begun := time.Now()
			for range 10 {
				one := start(t, p, srv, limit.Limits{MaxConcurrency: 1, RequestsPerMinute: 8})
				one.call()
				if one.kill(); name == "left" {
					one.leave()
				}
			}
			require.LessOrEqual(t, srv.mostIn(time.Minute), 8, name)
			require.Less(t, srv.began[7].Sub(begun), 7*most, name)
			time.Sleep(5 * time.Second)
		})
	}
}

// TestGroupThatLeavesIsAlone checks that a group uses its limits alone once it has left the last of its pools.
func TestGroupThatLeavesIsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, p, second := &server{url: "http://a/v1", latency: time.Second}, &pool{}, &pool{}
		one, other := start(t, p, srv, limit.Limits{MaxConcurrency: 4}), start(t, p, srv, limit.Limits{MaxConcurrency: 4})
		leaveSecond := one.limits.Share(second)
		one.callers(4)
		other.callers(4)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, 4, srv.atOnce)
		require.Zero(t, second.looks, "the first pool counts")
		one.leave()
		p.setAway(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.NotZero(t, second.looks)
		leaveSecond()
		leaveSecond()
		looks := second.looks
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, looks, second.looks)
		end(t, one, other)
	})
}

// TestLowestLimitHolds checks that the lowest limit that a process has set for an endpoint holds for all of them.
func TestLowestLimitHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := &server{url: "http://a/v1", latency: time.Second, most: 60, period: time.Minute}
		p := &pool{}
		all := []*process{start(t, p, srv, limit.Limits{RequestsPerMinute: 60}), start(t, p, srv, limit.Limits{RequestsPerMinute: 100, MaxConcurrency: 5}), start(t, p, srv, limit.Limits{})}
		for _, one := range all {
			one.callers(10)
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Minute)
		end(t, all...)
		require.LessOrEqual(t, srv.refused, 20)
		require.GreaterOrEqual(t, len(srv.began), 270)
	})
}

// TestWaitForOthersIsReported checks that a call says how long it waits for what other processes have used.
func TestWaitForOthersIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, p := &server{url: "http://a/v1"}, &pool{}
		one, other := start(t, p, srv, limit.Limits{RequestsPerMinute: 4}), start(t, p, srv, limit.Limits{RequestsPerMinute: 4})
		for range 4 {
			one.call()
		}
		time.Sleep(20 * time.Second)
		var waits []callwait.Wait
		other.ctx = callwait.Observe(other.ctx, func(w callwait.Wait) { waits = append(waits, w) })
		other.call()
		end(t, one, other)
		require.NotEmpty(t, waits)
		require.InDelta(t, 41, waits[0].For.Seconds(), 1)
	})
}

// TestUnlimitedEndpointsCostOneLook checks that nothing is stored of an endpoint without limits, and that no more looks are
// taken than two in a second, however many calls there are.
func TestUnlimitedEndpointsCostOneLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, p := &server{url: "http://a/v1", latency: 50 * time.Millisecond}, &pool{}
		one := start(t, p, srv, limit.Limits{})
		one.callers(5)
		time.Sleep(10 * time.Second)
		end(t, one)
		require.LessOrEqual(t, p.looks, 22)
		require.Zero(t, p.wrote)
		looks := p.looks
		time.Sleep(time.Hour)
		require.Equal(t, looks, p.looks, "an endpoint that is not used costs nothing")
	})
}
