package team_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A lagMeter measures how long pieces of texts take from the model to the caller.
type lagMeter struct {
	mu    sync.Mutex
	sent  map[string][]sentPiece // by task: pieces that have not arrived
	got   map[string]int         // bytes that have, by task
	texts map[string]*strings.Builder
	lags  []time.Duration
}

type sentPiece struct {
	end int // bytes of the text up to and with the piece
	at  time.Time
}

// heldBack is how many bytes behind a piece a redactor may wait for.
const heldBack = 64

func (m *lagMeter) send(title string, end int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent[title] = append(m.sent[title], sentPiece{end, time.Now()})
}

func (m *lagMeter) take(d event.Delta) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts[d.Title] == nil {
		m.texts[d.Title] = &strings.Builder{}
	}
	_, _ = m.texts[d.Title].WriteString(d.Text)
	m.got[d.Title] += len(d.Text)
	for list := m.sent[d.Title]; len(list) > 0 && list[0].end-heldBack <= m.got[d.Title]; list = m.sent[d.Title] {
		m.lags = append(m.lags, now.Sub(list[0].at))
		m.sent[d.Title] = list[1:]
	}
}

// BenchmarkStreams has 1,000 models write at once, each a piece of 100 bytes every 200 ms, and reports
// how late the caller gets them.
func BenchmarkStreams(b *testing.B) {
	const texts, pieces = 1000, 20
	piece := strings.Repeat("The river rises in the hills. ", 4)[:98] + ".\n"
	for b.Loop() {
		m := &lagMeter{sent: map[string][]sentPiece{}, got: map[string]int{}, texts: map[string]*strings.Builder{}}
		model := llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
			title, _, _ := strings.Cut(strings.TrimPrefix(r.Messages[0].Text, "# Task: "), "\n")
			for i := range pieces {
				time.Sleep(200 * time.Millisecond)
				m.send(title, (i+1)*len(piece))
				if err := emit(llm.Delta{Text: piece, Attempt: 1}); err != nil {
					return llm.Response{}, err
				}
			}
			return llm.Response{Text: strings.Repeat(piece, pieces), CallInfo: llm.CallInfo{FinishReason: "stop"}}, nil
		})
		tm, err := team.New(team.Config{Agents: []team.Member{{Name: "a", Agent: agent.New(model, agent.Options{})}}})
		require.NoError(b, err)
		specs := make([]task.Spec, texts)
		for i := range specs {
			specs[i] = task.Spec{Title: fmt.Sprint("Text ", i), Assignee: "a", Description: "Write."}
		}
		res, err := tm.RunTasks(b.Context(), specs, &team.RunOptions{MaxConcurrency: texts, Stream: m.take})
		require.NoError(b, err)
		for i := range res.Tasks {
			require.Equal(b, res.Tasks[i].Result, m.texts[res.Tasks[i].Title].String())
		}
		slices.Sort(m.lags)
		b.ReportMetric(float64(m.lags[len(m.lags)/2].Microseconds())/1000, "ms-median")
		b.ReportMetric(float64(m.lags[len(m.lags)*99/100].Microseconds())/1000, "ms-99%")
		b.ReportMetric(float64(m.lags[len(m.lags)-1].Microseconds())/1000, "ms-max")
	}
}
