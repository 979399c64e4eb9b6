package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// wideSpec returns a team of n tasks in layers of 50, of which each reads two of the layer before, and one
// that answers.
func wideSpec(n int) string {
	tasks := make([]map[string]any, n)
	for i := range tasks {
		tasks[i] = map[string]any{"title": fmt.Sprintf("Task %04d", i), "assignee": fmt.Sprintf("agent%d", i%7), "description": "Do it."}
		if i >= 50 {
			before := (i/50 - 1) * 50
			reads := []string{fmt.Sprintf("Task %04d", before+i%50)}
			if other := (i*7 + 3) % 50; i%3 > 0 && other != i%50 {
				reads = append(reads, fmt.Sprintf("Task %04d", before+other))
			}
			tasks[i]["dependsOn"] = reads
		}
	}
	agents := make([]map[string]any, 7)
	for i := range agents {
		agents[i] = map[string]any{"name": fmt.Sprintf("agent%d", i), "systemPrompt": "You work."}
	}
	out, _ := json.Marshal(map[string]any{"name": "wide", "model": "scripted", "offline": "script.json", "maxConcurrency": 50, "agents": agents, "tasks": tasks})
	return string(out)
}

// wideRun returns a server of a finished run of n tasks.
func wideRun(b *testing.B, n int) (*server, shownRun) {
	b.Helper()
	f := newFolder(b, map[string]string{"team.json": wideSpec(n), "script.json": `{"replies": [{"text": "done"}]}`})
	f.run(b, "run", "team.json", "--offline")
	s := f.serve(b, nil)
	return s, s.newest(b)
}

// BenchmarkFirstPaint measures from the request of the page of a run to its first paint and to its graph.
func BenchmarkFirstPaint(b *testing.B) {
	c := theClaims(b)
	p := c.look(b, wide, "")
	var paint, graph float64
	for b.Loop() {
		p.navigate("about:blank")
		p.navigate(c.url + "/#/runs/" + c.run.RunID)
		p.until(`document.querySelectorAll(".node").length > 11`)
		paint += eval[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
		graph += eval[float64](p, `performance.now()`)
	}
	b.ReportMetric(paint/float64(b.N), "ms/paint")
	b.ReportMetric(graph/float64(b.N), "ms/graph")
}

// BenchmarkPan measures the scripts of a frame while a graph of 500 tasks is moved.
func BenchmarkPan(b *testing.B) {
	s, run := wideRun(b, 500)
	p := s.open(b, wide, "#/runs/"+run.RunID)
	p.until(`document.querySelectorAll(".node").length > 20`)
	_, err := chromedp.Call(p.ctx, performance.Enable, performance.EnableParams{})
	require.NoError(b, err)
	at := point{X: 700, Y: 500}
	before, frames := p.scripted(), 0
	for b.Loop() {
		p.pressMouse(at)
		for i := range 60 {
			dx := float64(i%30) * 20
			if i >= 30 {
				dx = 600 - dx
			}
			require.NoError(b, chromedp.Do(p.ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at.X-dx, at.Y-float64(i), chromedp.ButtonType(input.MouseButtonLeft))))
			frames++
		}
		p.releaseMouse(point{X: at.X - 20, Y: at.Y - 59})
	}
	b.ReportMetric((p.scripted()-before)*1000/float64(frames), "ms-script/frame")
}

// scripted returns for how many seconds scripts of the page have worked.
func (p *tab) scripted() float64 {
	p.t.Helper()
	got, err := chromedp.Call(p.ctx, performance.GetMetrics, struct{}{})
	require.NoError(p.t, err)
	for _, m := range got.Metrics {
		if m.Name == "ScriptDuration" {
			return m.Value
		}
	}
	p.t.Fatal("the browser counts no scripts")
	return 0
}

// BenchmarkOpen5000 measures until a run of 5,000 tasks can be used.
func BenchmarkOpen5000(b *testing.B) {
	s, run := wideRun(b, 5000)
	p := s.open(b, wide, "#/runs")
	var cold float64
	for i := 0; b.Loop(); i++ {
		p.navigate("about:blank")
		p.navigate(s.url + "/#/runs/" + run.RunID)
		p.until(`document.querySelectorAll(".graph-svg .far path, .node").length > 1 && document.querySelector(".summary")`)
		if i == 0 {
			cold = eval[float64](p, `performance.now()`)
		}
	}
	b.ReportMetric(cold, "ms/first")
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/open")
}

// BenchmarkEvents measures how late the page is while a run makes many events.
func BenchmarkEvents(b *testing.B) {
	const tasks = 1500
	var answered atomic.Int64
	m := newModel(b, nil)
	m.any = func(c *modelCall) {
		answered.Add(1)
		c.write("done")
	}
	f := newFolder(b, map[string]string{"team.json": strings.Replace(wideSpec(tasks), `"offline":"script.json",`, "", 1)})
	for b.Loop() {
		answered.Store(0)
		s := f.serve(b, m.env(), "team.json")
		p := s.open(b, wide, "#/runs")
		startRun(p)
		late, rate := p.lateness(b, s, &answered, tasks)
		b.ReportMetric(late.Seconds()*1000, "ms-late/most")
		b.ReportMetric(rate, "tasks/s")
	}
}

// lateness returns the longest time after which the page showed as many ended tasks as the model had
// answered, and how many tasks ended in a second.
func (p *tab) lateness(b *testing.B, s *server, answered *atomic.Int64, tasks int) (most time.Duration, rate float64) {
	b.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(p.ctx, 2*time.Minute)
	defer cancel()
	for shown := 0; shown < tasks; {
		want, at := int(answered.Load()), time.Now()
		for shown < want || want == 0 {
			if want == 0 {
				want = int(answered.Load())
				at = time.Now()
			}
			text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector(".stat-tasks .num")?.textContent ?? "0/"`))
			require.NoError(b, err, s.output())
			_, err = fmt.Sscanf(strings.ReplaceAll(text, ",", ""), "%d/", &shown)
			require.NoError(b, err, text)
		}
		most = max(most, time.Since(at))
	}
	return most, float64(tasks) / time.Since(began).Seconds()
}
