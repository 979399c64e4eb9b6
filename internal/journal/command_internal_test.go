package journal

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A command that was altered in the file, or moved to another row or run, is not carried out.
func TestAlteredCommandIsNotRead(t *testing.T) {
	t.Parallel()
	j := InMemory(Options{Key: bytes.Repeat([]byte{1}, KeyBytes)})
	defer j.Close() //nolint:errcheck // it ends with the test
	d := &decoder{run: "r", vault: j.vault}
	given := leftLine{Command: steer.Command{Kind: steer.Interrupt, Task: "Write", Text: "stop", By: "ann", Reason: "late"}, Time: time.Now(), For: tenure{Holder{Host: "h", PID: 7}, 9}}
	raw, err := encodeLeft(j.vault, "r", 3, given)
	require.NoError(t, err)
	got, of := d.left(raw, 3)
	require.Empty(t, got.Missing)
	require.Equal(t, given.Command, got.Command)
	require.Equal(t, given.For, of)
	for _, change := range [][2]string{{`"stop"`, `"go"`}, {`"ann"`, `"bob"`}, {`"late"`, `"why"`}, {`"Write"`, `"Read"`}, {`"interrupt"`, `"rerun"`}, {`"pid":7`, `"pid":8`}, {`"taken":9`, `"taken":8`}, {`{`, `[`}} {
		altered := strings.Replace(string(raw), change[0], change[1], 1)
		require.NotEqual(t, string(raw), altered, change[0])
		got, _ := d.left([]byte(altered), 3)
		require.NotEmpty(t, got.Missing, change[0])
		require.Zero(t, got.Command, change[0])
	}
	got, _ = d.left(raw, 4)
	require.Equal(t, ErrAltered.Error(), got.Missing, "it is in another row")
	got, _ = (&decoder{run: "r2", vault: j.vault}).left(raw, 3)
	require.Equal(t, ErrAltered.Error(), got.Missing, "it is in another run")

	given.Classification = label.Secret
	raw, err = encodeLeft(j.vault, "r", 3, given)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "stop")
	require.NotContains(t, string(raw), "late")
	got, _ = d.left(raw, 3)
	require.Equal(t, given.Command, got.Command)
	got, _ = (&decoder{run: "r", vault: &vault{digests: j.vault.digests}}).left(raw, 3)
	require.Contains(t, got.Missing, "no key was given")
}

// Texts without a label of their own are internal: why a command was sent, and what the policy of a run or of a command
// says. If that is hidden, only the key shows it, and nothing takes the rest of a policy for one.
func TestUnlabeledTextsAreHidden(t *testing.T) {
	t.Parallel()
	j := InMemory(Options{Key: bytes.Repeat([]byte{1}, KeyBytes), EncryptFrom: new(label.Internal)})
	defer j.Close() //nolint:errcheck // it ends with the test
	d, locked := &decoder{run: "r", vault: j.vault}, &decoder{run: "r", vault: &vault{digests: j.vault.digests}}
	policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Block: []task.Path{"canary"}}}}
	stored, err := record.NewPolicy(policy, "0f", nil)
	require.NoError(t, err)
	encode := func(line any, err error) []byte {
		require.NoError(t, err)
		text, err := json.Marshal(line)
		require.NoError(t, err)
		require.NotContains(t, string(text), "canary")
		return text
	}
	requireLocked := func(p *record.Policy) {
		_, err := p.Policy()
		require.ErrorContains(t, err, "the stored policy cannot be read: it is encrypted under the key")
	}
	e := &encoder{run: "r", lines: trace.NewEncoder(nil), vault: j.vault, above: newSensitiveTasks(j.vault)}
	e.above.learn(&record.Entry{Begin: &record.RunStart{Label: new(label.Internal)}})
	begin := &record.RunStart{Run: "r", Policy: stored}
	raw := encode(e.begin(begin))
	begun, err := d.start(raw)
	require.NoError(t, err)
	require.Equal(t, stored, begun.Policy)
	begun, err = locked.start(raw)
	require.NoError(t, err)
	requireLocked(begun.Policy)
	var old beginLine // as a program reads it that does not know of hidden policies
	require.NoError(t, json.Unmarshal(raw, &old))
	_, err = old.Policy.Policy()
	require.Error(t, err)

	sent := &record.Command{Kind: steer.ReplacePolicy, By: "ann", Reason: "canary", EventReason: "canary", Policy: stored, Time: time.Unix(7, 0).UTC()}
	raw = encode(e.command(sent))
	c, err := d.command(raw)
	require.NoError(t, err)
	require.Equal(t, sent, c)
	c, err = locked.command(raw)
	require.NoError(t, err)
	require.NotNil(t, c)

	given := leftLine{Command: steer.Command{Kind: steer.ReplacePolicy, By: "ann", Reason: "canary", Policy: policy, Replaces: "0f", Classification: label.Public}, Policy: stored, Time: time.Now(), For: tenure{Holder{Host: "h"}, 9}}
	raw, err = encodeLeft(j.vault, "r", 3, given)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "canary")
	got, _ := d.left(raw, 3)
	require.Empty(t, got.Missing)
	require.Equal(t, given.Command, got.Command)
	got, _ = locked.left(raw, 3)
	require.Contains(t, got.Missing, "no key was given")
}

// A policy that was altered on its way to the run is not read.
func TestAlteredPolicyIsNotRead(t *testing.T) {
	t.Parallel()
	j := InMemory(Options{Key: bytes.Repeat([]byte{1}, KeyBytes)})
	defer j.Close() //nolint:errcheck // it ends with the test
	d := &decoder{run: "r", vault: j.vault}
	policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Block: []task.Path{"ssn"}, Origin: provenance.Position{File: "team.yaml", Line: 7}}}}
	sent, err := record.NewPolicy(policy, "", nil)
	require.NoError(t, err)
	given := leftLine{Command: steer.Command{Kind: steer.ReplacePolicy, By: "ann", Policy: policy, Replaces: "0f"}, Policy: sent, Time: time.Now(), For: tenure{Holder{Host: "h", PID: 7}, 9}}
	raw, err := encodeLeft(j.vault, "r", 3, given)
	require.NoError(t, err)
	got, _ := d.left(raw, 3)
	require.Empty(t, got.Missing)
	require.Equal(t, given.Command, got.Command)
	for _, change := range [][2]string{{`"ssn"`, `"ssm"`}, {`"0f"`, `"1f"`}, {"team.yaml", "other.yaml"}} {
		got, _ := d.left([]byte(strings.Replace(string(raw), change[0], change[1], 1)), 3)
		require.Equal(t, ErrAltered.Error(), got.Missing, change[0])
		require.Nil(t, got.Command.Policy)
	}

	e := &encoder{run: "r", vault: j.vault, above: newSensitiveTasks(j.vault)}
	sent.Digest, sent.Parties = "2f", []gate.Party{{Name: "a"}, {Name: "b"}}
	taken := &record.Command{Kind: steer.ReplacePolicy, By: "ann", Time: time.Unix(7, 0).UTC(), Policy: sent}
	line, err := e.command(taken)
	require.NoError(t, err)
	raw, err = json.Marshal(line)
	require.NoError(t, err)
	was, err := d.command(raw)
	require.NoError(t, err)
	require.Equal(t, taken, was)
	for _, change := range [][2]string{{`"ssn"`, `"ssm"`}, {`"2f"`, `"3f"`}, {`"policy","by"`, `"pause","by"`}} {
		was, err := d.command([]byte(strings.Replace(string(raw), change[0], change[1], 1)))
		require.NoError(t, err)
		_, err = was.Policy.Policy()
		require.ErrorIs(t, err, record.ErrPolicyAltered, "a run that is resumed must not go on without it")
	}
}

// A line of a command that was altered is not read, and a reason about a task with context above
// confidential is encrypted.
func TestLineOfACommand(t *testing.T) {
	t.Parallel()
	j := InMemory(Options{Key: bytes.Repeat([]byte{1}, KeyBytes)})
	defer j.Close() //nolint:errcheck // it ends with the test
	e, d := &encoder{run: "r", vault: j.vault, above: newSensitiveTasks(j.vault)}, &decoder{run: "r", vault: j.vault}
	given := &record.Command{Kind: steer.Interrupt, Task: "t", Title: "T", Agent: "a", By: "ann", Reason: "because", EventReason: "as asked", Time: time.Unix(7, 0).UTC(), Taken: time.Unix(9, 0).UTC()}
	encode := func() []byte {
		line, err := e.command(given)
		require.NoError(t, err)
		raw, err := json.Marshal(line)
		require.NoError(t, err)
		return raw
	}
	raw := encode()
	got, err := d.command(raw)
	require.NoError(t, err)
	require.Equal(t, given, got)
	for _, change := range [][2]string{{`"T"`, `"U"`}, {`"t"`, `"u"`}, {`"a"`, `"b"`}, {`"ann"`, `"bob"`}, {`"because"`, `"why"`}, {`"as asked"`, `"why"`}, {`,"eventReason":"as asked"`, ``}, {`"interrupt"`, `"rerun"`}, {`00:00:07Z`, `00:00:06Z`}, {`00:00:09Z`, `00:00:08Z`}, {`,"taken":"1970-01-01T00:00:09Z"`, ``}} {
		got, err := d.command([]byte(strings.Replace(string(raw), change[0], change[1], 1)))
		require.NoError(t, err)
		require.Nil(t, got, change[0])
	}
	require.Contains(t, string(raw), `,"taken":"1970-01-01T00:00:09Z"`)
	e.above.add("t", label.Secret, false)
	raw = encode()
	require.NotContains(t, string(raw), "because")
	require.NotContains(t, string(raw), "as asked")
	got, err = d.command(raw)
	require.NoError(t, err)
	require.Equal(t, given, got)
	got, err = (&decoder{run: "r", vault: &vault{digests: j.vault.digests}}).command(raw)
	require.NoError(t, err)
	require.Equal(t, []string{j.vault.withheld(), ""}, []string{got.Reason, got.EventReason})
}

// A command whose sender was killed does not wait for another process, and a row that is put back
// is not carried out again.
func TestCommandIsForOneProcessAndOnce(t *testing.T) {
	t.Parallel()
	j, err := Open(filepath.Join(t.TempDir(), "runs.db"), Options{})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it ends with the test
	r, err := j.Begin(t.Context(), Info{Run: "r"})
	require.NoError(t, err)
	leave := func(of tenure) (n int64, line []byte) {
		n, err := j.store.commands.leave(t.Context(), r.row.n, func(l *lease) bool { return l.tenure() == of }, func(n int64) ([]byte, error) {
			line, err = encodeLeft(j.vault, "r", n, leftLine{Command: steer.Command{Kind: steer.Pause, By: "ann"}, For: of})
			return line, err
		})
		require.NoError(t, err)
		return n, line
	}
	n, line := leave(r.tenure)
	list, err := r.Commands(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, r.Refuse(t.Context(), n, "no"))
	_, err = j.store.db.(*sqliteDB).write.db.ExecContext(t.Context(), "update commands set outcome = '', line = ?", line)
	require.NoError(t, err)
	list, err = r.Commands(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)

	first := r.tenure
	n, _ = leave(first)
	_, err = r.End(t.Context())
	require.NoError(t, err)
	list, err = r.Commands(t.Context())
	require.NoError(t, err)
	require.Empty(t, list, "it works on the run no more")
	r, _, err = j.Resume(t.Context(), "r")
	require.NoError(t, err)
	list, err = r.Commands(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	outcome, err := j.store.commands.outcome(t.Context(), n)
	require.NoError(t, err)
	require.Equal(t, "it was for a process that has ended", outcome)
	_, err = j.store.commands.leave(t.Context(), r.row.n, func(l *lease) bool { return l.tenure() == first }, nil)
	require.ErrorIs(t, err, steer.ErrNotRunning)
	j.store.db.(*sqliteDB).form = withCommands
	require.ErrorIs(t, j.Steer(t.Context(), "r", steer.Command{Kind: steer.Pause, By: "ann"}), ErrFull)
}

// A message for one task cannot be given to another one.
func TestMessageIsForItsTask(t *testing.T) {
	t.Parallel()
	line := &messageLine{SentMessage: record.SentMessage{ID: "m", From: "user", To: "writer"}}
	all := line.digestInput("r", record.Digest{})
	line.Task = "t"
	one := line.digestInput("r", record.Digest{})
	require.NotEqual(t, all, one)
	line.Task = "u"
	require.NotEqual(t, one, line.digestInput("r", record.Digest{}))
}
