package limit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callwait"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server answers calls after its latency, and refuses those above its limits at once.
type server struct {
	url     string
	latency time.Duration
	most    int // calls in any period; 0 for no limit
	period  time.Duration
	fixed   bool          // periods follow one another instead
	after   time.Duration // of refusals: Retry-After

	mu      sync.Mutex
	began   []time.Time // accepted calls
	refused int
	running int
	atOnce  int // the most that ran
	order   []string
}

// A located function is a model at one endpoint.
type located llm.ModelFunc

func (located) Endpoint() string { return "http://a/v1" }

func (l located) Call(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	return l(ctx, req, emit)
}

func (s *server) Endpoint() string { return s.url }

func (s *server) Call(ctx context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
	if !s.take(req) {
		return llm.Response{}, &llm.Error{Kind: callfault.RateLimited, Status: 429, Endpoint: s.url, RetryAfter: s.after}
	}
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	select {
	case <-time.After(s.latency):
		return llm.Response{Text: "done", Usage: llm.Usage{InputTokens: 10, OutputTokens: 5}}, nil
	case <-ctx.Done():
		return llm.Response{}, context.Cause(ctx)
	}
}

// take reports whether a call is within the limits.
func (s *server) take(req llm.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, n := time.Now(), 0
	for _, t := range s.began {
		if s.fixed && t.Truncate(s.period).Equal(now.Truncate(s.period)) || !s.fixed && now.Sub(t) < s.period {
			n++
		}
	}
	if s.most > 0 && n >= s.most {
		s.refused++
		return false
	}
	s.began = append(s.began, now)
	s.order = append(s.order, req.System)
	s.running++
	s.atOnce = max(s.atOnce, s.running)
	return true
}

// callAll makes n calls of m by so many workers, and returns their errors.
func callAll(t *testing.T, m llm.Model, n, workers int) (failed []error) {
	t.Helper()
	jobs := make(chan int, n)
	for i := range n {
		jobs <- i
	}
	close(jobs)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range jobs {
				if _, err := m.Call(t.Context(), llm.Request{Settings: llm.Settings{MaxTokens: 100}}, nil); err != nil {
					mu.Lock()
					failed = append(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed
}

// TestRefusedCallsSlowTheEndpointDown makes calls to servers that refuse what is above
// a limit without saying until when. All calls succeed, few are refused, and they take
// no more than twice as long as the limit demands.
func TestRefusedCallsSlowTheEndpointDown(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		name           string
		server         *server
		calls, workers int
		share          int // of refused calls, in percent; at most
	}{
		{"10 in each 10 s", &server{most: 10, period: 10 * s, fixed: true}, 40, 5, 20},
		{"10 in any 10 s", &server{most: 10, period: 10 * s}, 40, 5, 20},
		{"10 in each 10 s, 40 workers", &server{most: 10, period: 10 * s, fixed: true, latency: ms}, 40, 40, 50},
		{"10 in each 10 s, calls of 50 ms", &server{most: 10, period: 10 * s, fixed: true, latency: 50 * ms}, 40, 5, 20},
		{"10 in any 10 s, calls of 1 s", &server{most: 10, period: 10 * s, latency: s}, 40, 5, 20},
		{"10 in any 10 s, calls of 5 s", &server{most: 10, period: 10 * s, latency: 5 * s}, 40, 10, 20},
		{"60 in any minute", &server{most: 60, period: time.Minute, latency: s}, 200, 20, 20},
		{"500 in any minute", &server{most: 500, period: time.Minute, latency: s}, 2000, 40, 5},
		{"10 in any second", &server{most: 10, period: s, latency: 300 * ms}, 500, 40, 10},
		{"3 in each minute", &server{most: 3, period: time.Minute, fixed: true, latency: 2 * s}, 20, 5, 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, begun := tt.server, time.Now()
				failed := callAll(t, new(limit.Group).Model(srv, 0), tt.calls, tt.workers)
				require.Empty(t, failed)
				require.NotZero(t, srv.refused, "the server has a limit")
				require.LessOrEqual(t, 100*srv.refused, tt.share*(tt.calls+srv.refused), "%d refused", srv.refused)
				least := srv.period * time.Duration((tt.calls-1)/srv.most)
				require.Less(t, time.Since(begun), 2*least)
			})
		})
	}
}

// TestEndpointsHaveSeparateLimits checks that an endpoint which refuses calls does not
// slow another one down, and that all spellings of a base URL are one endpoint.
func TestEndpointsHaveSeparateLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g limit.Group
		busy, free := &server{url: "http://busy/v1", most: 1, period: time.Minute, latency: time.Second}, &server{url: "http://free/v1", latency: time.Second}
		var wg sync.WaitGroup
		wg.Go(func() { require.Empty(t, callAll(t, g.Model(busy, 0), 2, 2)) })
		begun := time.Now()
		require.Empty(t, callAll(t, g.Model(free, 0), 20, 2))
		require.Equal(t, 10*time.Second, time.Since(begun))
		begun = time.Now()
		same := &server{url: "HTTP://Busy:80/v1/chat/completions"}
		require.Empty(t, callAll(t, g.Model(same, 0), 1, 1))
		require.Greater(t, time.Since(begun), time.Second, "it waits for the pause of the endpoint")
		wg.Wait()
	})
}

// TestModelsWithoutEndpointHaveSeparateLimits checks that nothing is shared by chance.
func TestModelsWithoutEndpointHaveSeparateLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g limit.Group
		g.Set("", limit.Limits{MaxConcurrency: 1})
		a, b := &server{most: 1, period: time.Minute}, &server{}
		begun := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { require.Empty(t, callAll(t, g.Model(a, 0), 2, 1)) })
		time.Sleep(time.Millisecond)
		require.Empty(t, callAll(t, g.Model(b, 0), 10, 1))
		require.Equal(t, time.Millisecond, time.Since(begun))
		wg.Wait()
	})
}

// most returns how many calls at most began in a period.
func (s *server) mostIn(period time.Duration) (most int) {
	for i, from := range s.began {
		n := 0
		for _, at := range s.began[i:] {
			if at.Sub(from) < period {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// TestRequestsPerMinute makes calls of random length and at random times. No 60 seconds
// have more than the limit, and no call waits longer than it has to.
func TestRequestsPerMinute(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		limits := rapid.IntRange(1, 20).Draw(r, "limit")
		latency := time.Duration(rapid.IntRange(0, 90).Draw(r, "latency")) * time.Second
		pauses := rapid.SliceOfN(rapid.IntRange(0, 3000), 1, 60).Draw(r, "pauses")
		synctest.Test(t, func(t *testing.T) {
			var g limit.Group
			g.Set("http://a/v1", limit.Limits{RequestsPerMinute: limits})
			srv, begun := &server{url: "http://a/v1", latency: latency}, time.Now()
			m := g.Model(srv, 0)
			var wg sync.WaitGroup
			for _, pause := range pauses {
				time.Sleep(time.Duration(pause) * time.Millisecond)
				wg.Go(func() {
					_, err := m.Call(t.Context(), llm.Request{}, nil)
					require.NoError(t, err)
				})
			}
			came := time.Since(begun)
			wg.Wait()
			require.LessOrEqual(r, srv.mostIn(time.Minute), limits)
			require.LessOrEqual(r, time.Since(begun), came+time.Duration((len(pauses)-1)/limits)*62*time.Second+latency)
			require.Len(r, srv.began, len(pauses))
		})
	})
}

// TestCallsBeginAtOnceUpToTheLimit checks the burst that the documentation names.
func TestCallsBeginAtOnceUpToTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g limit.Group
		g.Set("http://a/v1", limit.Limits{RequestsPerMinute: 10})
		srv, begun := &server{url: "http://a/v1"}, time.Now()
		m := g.Model(srv, 0)
		require.Empty(t, callAll(t, m, 10, 10))
		require.Zero(t, time.Since(begun))
		require.Empty(t, callAll(t, m, 1, 1))
		require.Equal(t, 61*time.Second, time.Since(begun))
	})
}

// TestTokensPerMinute checks that calls count with their estimate while they run and
// with what the endpoint counted afterwards.
func TestTokensPerMinute(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		tokens int // per minute
		calls  int
		want   []time.Duration // when they begin; each takes a second and 15 tokens
	}{
		{"reserved", 250, 3, []time.Duration{0, 0, time.Second}},
		{"settled", 130, 4, []time.Duration{0, time.Second, 2 * time.Second, 61 * time.Second}},
		{"more than the limit", 50, 3, []time.Duration{0, 61 * time.Second, 122 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var g limit.Group
				g.Set("http://a/v1", limit.Limits{TokensPerMinute: tt.tokens})
				srv, begun := &server{url: "http://a/v1", latency: time.Second}, time.Now()
				require.Empty(t, callAll(t, g.Model(srv, 0), tt.calls, tt.calls))
				for i, at := range tt.want {
					require.Equal(t, at, srv.began[i].Sub(begun), "call %d", i)
				}
			})
		})
	}
}

// TestMaxConcurrency checks that no more calls are made at once than the limit says,
// and that a change of the limits holds for calls that wait.
func TestMaxConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g limit.Group
		g.Set("http://a/v1", limit.Limits{MaxConcurrency: 3})
		srv, begun := &server{url: "http://a/v1", latency: time.Second}, time.Now()
		m := g.Model(srv, 0)
		require.Empty(t, callAll(t, m, 12, 12))
		require.Equal(t, 4*time.Second, time.Since(begun))
		require.Equal(t, 3, srv.atOnce)

		var wg sync.WaitGroup
		wg.Go(func() { require.Empty(t, callAll(t, m, 12, 12)) })
		time.Sleep(time.Second / 2)
		g.Set("http://a/v1/", limit.Limits{})
		wg.Wait()
		require.Equal(t, 5500*time.Millisecond, time.Since(begun))
		require.Equal(t, 12, srv.atOnce)
	})
}

// TestCallsBeginInOrder checks that no call overtakes another one.
func TestCallsBeginInOrder(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]limit.Limits{"concurrency": {MaxConcurrency: 1}, "requests": {RequestsPerMinute: 2}, "refusals": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var g limit.Group
				g.Set("http://a/v1", set)
				srv := &server{url: "http://a/v1", latency: time.Second}
				if set == (limit.Limits{}) {
					srv.most, srv.period = 1, 5*time.Second
				}
				m := g.Model(srv, 0)
				var wg sync.WaitGroup
				var want []string
				for i := range 20 {
					name := string(rune('a' + i))
					want = append(want, name)
					wg.Go(func() {
						_, err := m.Call(t.Context(), llm.Request{System: name}, nil)
						require.NoError(t, err)
					})
					time.Sleep(10 * time.Millisecond)
				}
				wg.Wait()
				if srv.refused > 0 { // a call that is refused comes again after the others
					slices.Sort(srv.order)
				}
				require.Equal(t, want, srv.order)
			})
		})
	}
}

// TestWaitStopsWhenContextEnds checks that a call that waits ends at once with its
// context, and that the calls after it continue.
func TestWaitStopsWhenContextEnds(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]limit.Limits{"concurrency": {MaxConcurrency: 1}, "requests": {RequestsPerMinute: 1}, "refusals": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var g limit.Group
				g.Set("http://a/v1", set)
				srv := &server{url: "http://a/v1", most: 1, period: 90 * time.Second, latency: 30 * time.Second}
				m := g.Model(srv, 0)
				var wg sync.WaitGroup
				wg.Go(func() {
					_, err := m.Call(t.Context(), llm.Request{System: "first"}, nil)
					require.NoError(t, err)
				})
				time.Sleep(time.Second)
				interrupt := errors.New("interrupted")
				ctx, cancel := context.WithCancelCause(t.Context())
				for range 3 {
					wg.Go(func() {
						begun := time.Now()
						_, err := m.Call(ctx, llm.Request{}, nil)
						require.ErrorIs(t, err, interrupt)
						require.Equal(t, 5*time.Second, time.Since(begun))
					})
				}
				wg.Go(func() {
					time.Sleep(time.Second)
					_, err := m.Call(t.Context(), llm.Request{System: "last"}, nil)
					require.NoError(t, err)
				})
				time.Sleep(5 * time.Second)
				cancel(interrupt)
				wg.Wait()
				require.Equal(t, []string{"first", "last"}, srv.order)
			})
		})
	}
}

// TestStuckCallReleasesItsSlot calls a model that does not heed the end of its
// context.
func TestStuckCallReleasesItsSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g limit.Group
		g.Set("http://a/v1", limit.Limits{MaxConcurrency: 1})
		stuck := make(chan struct{})
		m := g.Model(located(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
			<-stuck
			return llm.Response{}, nil
		}), 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = m.Call(ctx, llm.Request{}, nil) })
		time.Sleep(time.Second)
		begun := time.Now()
		require.Empty(t, callAll(t, g.Model(&server{url: "http://a/v1"}, 0), 5, 5))
		require.Equal(t, 59*time.Second, time.Since(begun))
		close(stuck)
		wg.Wait()
		require.Empty(t, callAll(t, g.Model(&server{url: "http://a/v1", latency: time.Second}, 0), 2, 2))
		require.Equal(t, 61*time.Second, time.Since(begun), "its place was given back once")
	})
}

// TestRetryAfterAppliesToAllCalls checks that no call begins before the time that the
// endpoint named to one of them.
func TestRetryAfterAppliesToAllCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g limit.Group
		srv := &server{url: "http://a/v1", most: 2, period: 20 * time.Second, fixed: true, after: 20 * time.Second}
		m := g.Model(srv, 0)
		begun := time.Now()
		require.Empty(t, callAll(t, m, 3, 1))
		require.Equal(t, 1, srv.refused)
		require.GreaterOrEqual(t, time.Since(begun), 20*time.Second)
		require.Empty(t, callAll(t, g.Model(srv, 0), 1, 1))
	})
}

// refusing is an endpoint that refuses all calls.
func refusing(calls *atomic.Int64, after time.Duration) llm.Model {
	return located(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		calls.Add(1)
		return llm.Response{}, &llm.Error{Kind: callfault.RateLimited, Status: 429, RetryAfter: after, Endpoint: "http://a/v1", Model: "m", Message: "slow down"}
	})
}

// TestCallsGiveUpAfterMaxWait checks that calls of an endpoint that refuses all of them end
// after a bounded time, with a clear error that is not retried.
func TestCallsGiveUpAfterMaxWait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		after    time.Duration
		patience time.Duration
		within   time.Duration
		calls    int64
	}{
		{"no time is named", 0, 0, 150 * time.Second, 50},
		{"a short time is named", time.Second, 0, 150 * time.Second, 50},
		{"less patience", 0, 10 * time.Second, 20 * time.Second, 45},
		{"a time beyond the patience is named", time.Hour, 0, 0, 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var g limit.Group
				var calls atomic.Int64
				m := llm.Retry(g.Model(refusing(&calls, tt.after), tt.patience), llm.RetryOptions{Extra: 5})
				begun := time.Now()
				failed := callAll(t, m, 200, 40)
				require.Len(t, failed, 200)
				require.LessOrEqual(t, time.Since(begun), tt.within)
				require.LessOrEqual(t, calls.Load(), tt.calls)
				for _, err := range failed {
					var e *llm.Error
					require.ErrorAs(t, err, &e)
					require.Equal(t, callfault.RateLimited, e.Kind)
					require.ErrorAs(t, err, new(*callfault.RefusedError))
					require.Contains(t, err.Error(), "rate limited (429)")
				}
				if tt.after == time.Hour {
					require.ErrorContains(t, failed[0], "(retry after 1h0m0s)")
				}
			})
		})
	}
}

// TestErrorTextStaysWithItsCall checks that what the endpoint said of one
// call, which may repeat its prompt, is not part of the error of another one.
func TestErrorTextStaysWithItsCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g limit.Group
		var calls atomic.Int64
		m := g.Model(refusing(&calls, time.Hour), 0)
		_, err := m.Call(t.Context(), llm.Request{}, nil)
		require.EqualError(t, err, `model "m" at http://a/v1: rate limited (429) (retry after 1h0m0s): slow down`)
		time.Sleep(time.Minute)
		_, err = m.Call(t.Context(), llm.Request{}, nil)
		require.EqualError(t, err, `http://a/v1: rate limited (429) for 1m0s (retry after 59m0s)`)
		require.EqualValues(t, 1, calls.Load())
	})
}

// TestCallRefusedAloneGivesUp checks that a call that is refused while others
// succeed ends, and does not hold the others up.
func TestCallRefusedAloneGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g limit.Group
		var refused atomic.Int64
		m := g.Model(llm.ModelFunc(func(_ context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
			if req.System == "too large" {
				refused.Add(1)
				return llm.Response{}, &llm.Error{Kind: callfault.RateLimited, Status: 429}
			}
			return llm.Response{Text: "done"}, nil
		}), 0)
		var wg sync.WaitGroup
		wg.Go(func() { require.Empty(t, callAll(t, m, 200, 5)) })
		_, err := m.Call(t.Context(), llm.Request{System: "too large"}, nil)
		require.ErrorContains(t, err, "rate limited (429)")
		require.LessOrEqual(t, refused.Load(), int64(10))
		wg.Wait()
	})
}

// TestOtherErrorsAreReturned checks that errors that are no refusal reach the caller as they
// are, and slow nothing down.
func TestOtherErrorsAreReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g limit.Group
		begun := time.Now()
		for _, want := range []error{
			&llm.Error{Kind: callfault.NoCredit, Status: 429}, &llm.Error{Kind: callfault.ServerError, Status: 503, RetryAfter: time.Minute}, errors.New("broken"),
		} {
			m := g.Model(located(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
				return llm.Response{}, want
			}), 0)
			for range 3 {
				_, err := m.Call(t.Context(), llm.Request{}, nil)
				require.Equal(t, want, err)
			}
		}
		require.Zero(t, time.Since(begun))
		_, err := g.Model(nil, 0).Call(t.Context(), llm.Request{}, nil)
		require.ErrorIs(t, err, llm.ErrNoModel)
	})
}

// TestStartedStreamIsNotRepeated checks that a caller does not get a text twice.
func TestStartedStreamIsNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g limit.Group
		calls := 0
		m := g.Model(llm.ModelFunc(func(_ context.Context, _ llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
			if calls++; calls == 1 {
				require.NoError(t, emit(llm.Delta{Text: "half", Attempt: 1}))
			}
			if calls < 4 {
				return llm.Response{}, &llm.Error{Kind: callfault.RateLimited}
			}
			return llm.Response{Text: "done"}, emit(llm.Delta{Text: "done", Attempt: 1})
		}), 0)
		var text string
		emit := func(d llm.Delta) error {
			text += d.Text
			return nil
		}
		_, err := m.Call(t.Context(), llm.Request{}, emit)
		require.Error(t, err)
		require.Equal(t, 1, calls)
		text = ""
		res, err := m.Call(t.Context(), llm.Request{}, emit)
		require.NoError(t, err)
		require.Equal(t, "done", res.Text)
		require.Equal(t, "done", text)
	})
}

// TestReportedWaits checks that calls that wait report it, but not often.
func TestReportedWaits(t *testing.T) {
	t.Parallel()
	type notice struct {
		until time.Duration
		of    callwait.Wait
	}
	notices := func(t *testing.T, srv *server, set limit.Limits, calls int) (all []notice) {
		synctest.Test(t, func(t *testing.T) {
			var g limit.Group
			g.Set(srv.url, set)
			m := g.Model(srv, 0)
			begun := time.Now()
			ctx := callwait.Observe(t.Context(), func(w callwait.Wait) {
				require.GreaterOrEqual(t, w.For, time.Second)
				n := notice{time.Since(begun) + w.For, w}
				n.of.For = 0
				all = append(all, n)
			})
			for range calls {
				_, err := m.Call(ctx, llm.Request{}, nil)
				require.NoError(t, err)
			}
		})
		return all
	}
	const s = time.Second
	require.Equal(t, []notice{{until: 61 * s}, {until: 122 * s}},
		notices(t, &server{url: "http://a/v1"}, limit.Limits{RequestsPerMinute: 2}, 6), "limits that are set")
	refused := callwait.Wait{Refused: true, Endpoint: "http://a/v1"}
	require.Equal(t, []notice{{4 * s, refused}, {12 * s, refused}},
		notices(t, &server{url: "http://a/v1", most: 2, period: 9 * s, fixed: true}, limit.Limits{}, 3), "refusals")
	require.Equal(t, []notice{{9 * s, refused}},
		notices(t, &server{url: "http://a/v1", most: 2, period: 5 * s, fixed: true, after: 9 * s}, limit.Limits{}, 3), "a time is named")
	require.Empty(t, notices(t, &server{url: "http://a/v1"}, limit.Limits{RequestsPerMinute: 2, MaxConcurrency: 1}, 2))
}

// TestWokenCallReportsNoWaitTwice checks that a call reports what it waits for once,
// even if it looks again before the time has come.
func TestWokenCallReportsNoWaitTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g limit.Group
		srv, notices := &server{url: "http://a/v1"}, 0
		g.Set(srv.url, limit.Limits{RequestsPerMinute: 1})
		m := g.Model(srv, 0)
		require.Empty(t, callAll(t, m, 1, 1))
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := m.Call(callwait.Observe(t.Context(), func(callwait.Wait) { notices++ }), llm.Request{}, nil)
			require.NoError(t, err)
		})
		for range 5 {
			time.Sleep(time.Second)
			g.Set(srv.url, limit.Limits{RequestsPerMinute: 1})
		}
		wg.Wait()
		require.Equal(t, 1, notices)
	})
}

// BenchmarkCall measures what limits add to a call that does not wait.
func BenchmarkCall(b *testing.B) {
	var g limit.Group
	g.Set("http://a/v1", limit.Limits{MaxConcurrency: 1000})
	m := g.Model(located(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "done"}, nil
	}), 0)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _ = m.Call(ctx, llm.Request{}, nil)
		}
	})
}
