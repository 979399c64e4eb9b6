//go:build unix

package openai_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

const (
	atOnce  = 256
	latency = 50 * time.Millisecond
)

// BenchmarkThroughput makes 256 calls at once to the scripted endpoint, which takes
// 50 ms for each and runs in a process of its own. Besides the time of a call it
// reports the share of the ideal throughput, 5120 calls a second, and the processor
// time of the client for one call. The goals are 85 % and 200 µs.
func BenchmarkThroughput(b *testing.B) {
	m, err := openai.New(openai.Config{BaseURL: serveApart(b), Model: "m"})
	require.NoError(b, err)
	b.Cleanup(func() { _ = m.Close() })
	req := llm.Request{System: strings.Repeat("Be brief. ", 20), Messages: []llm.Message{{Role: llm.User, Text: strings.Repeat("Some words of a prompt. ", 100)}}}
	b.SetParallelism(atOnce / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	before, began := processorTime(b), time.Now()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := m.Call(b.Context(), req, nil); err != nil {
				b.Error(err)
			}
		}
	})
	elapsed, spent := time.Since(began), processorTime(b)-before
	ideal := latency * time.Duration((b.N+atOnce-1)/atOnce)
	b.ReportMetric(100*float64(ideal)/float64(elapsed), "%ideal")
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "cpu-µs/op")
}

// processorTime returns the processor time that this process took.
func processorTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// apart names the environment variable that makes the test binary an endpoint.
const apart = "RUNTEAM_TEST_ENDPOINT"

// init is the endpoint that serveApart starts. It ends when its input does.
func init() {
	if os.Getenv(apart) == "" {
		return
	}
	s, err := scripted.Start(&scripted.Script{Replies: []scripted.Reply{{Text: "done", Delay: latency}}}, scripted.Options{})
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(s.URL() + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = s.Close()
	os.Exit(0)
}

// serveApart serves a script in another process and returns its base URL.
func serveApart(tb testing.TB) string {
	server := exec.CommandContext(context.WithoutCancel(tb.Context()), os.Args[0])
	server.Env = append(os.Environ(), apart+"=1")
	in, err := server.StdinPipe()
	require.NoError(tb, err)
	out, err := server.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, server.Start())
	tb.Cleanup(func() {
		_ = in.Close()
		_ = server.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(tb, err)
	return strings.TrimSpace(url)
}
