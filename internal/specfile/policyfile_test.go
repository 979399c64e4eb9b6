package specfile_test

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/policytext"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/specfile"
)

// What is written of a policy is read again as the same policy, by this package and by the one that
// wrote it.
func TestWrittenPolicyIsRead(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"everything": fullPolicy, "a mode": "policy: {default: minimal}", "nothing": "policy: {}",
		"a model": "policy: {rules: [{from: a, to: b, translate: {summarize: {maxTokens: 5, by: model}}}]}",
		"html":    `policy: {declassify: [{name: d, from: a, to: b, paths: ["/a<b>"], reason: "<&>", lowerTo: public}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(text), Offline: true})
			require.NoError(t, err)
			p := f.Config.Policy
			if p == nil {
				p = &handoff.Policy{}
			}
			written, err := policytext.Write(p)
			require.NoError(t, err)
			origins := policytext.Origins(p)
			again, err := policytext.Read(written)
			require.NoError(t, err)
			policytext.SetOrigins(again, origins)
			require.Equal(t, p, again)
			var agents strings.Builder
			for i, a := range f.Agents {
				if i > 0 {
					agents.WriteString(",")
				}
				agents.WriteString(`{"name":"` + a.Member.Name + `"}`)
			}
			_, read, err := specfile.LoadPolicy("", "-", strings.NewReader(`{"agents":[`+agents.String()+`],"policy":`+string(written)+`}`), nil)
			if agents.String() == "" {
				_, read, err = specfile.LoadPolicy("", "-", strings.NewReader(`{"policy":`+string(written)+`}`), nil)
			}
			require.NoError(t, err)
			policytext.SetOrigins(read, make([]provenance.Position, 100))
			policytext.SetOrigins(p, make([]provenance.Position, 100))
			require.Equal(t, p, read)
		})
	}
}

func TestFileWithoutAPolicy(t *testing.T) {
	t.Parallel()
	_, _, err := specfile.LoadPolicy("", "-", strings.NewReader("agents: [{name: a}]"), nil)
	require.ErrorContains(t, err, "there is no policy")
	_, p, err := specfile.LoadPolicy("", "-", strings.NewReader("policy: {}"), nil)
	require.NoError(t, err)
	require.Equal(t, &handoff.Policy{}, p)
	_, _, err = specfile.LoadPolicy("", "-", strings.NewReader("policy: {rules: [{form: a}]}"), nil)
	require.ErrorContains(t, err, `unknown key "form"`)
	rule := `{"from":"a","to":"b","name":"` + strings.Repeat("x", 999) + `"},`
	_, _, err = specfile.LoadPolicy("", "-", strings.NewReader(`{"policy":{"rules":[`+strings.TrimSuffix(strings.Repeat(rule, 2000), ",")+`]}}`), nil)
	require.Error(t, err)
}

// A policy may come from elsewhere than this computer, so it reads no file and no variable.
func TestAPolicyReadsNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("notes.txt", []byte("canary-4711"), 0o600))
	for _, policy := range []string{
		`{"file":"notes.txt"}`, `{"rules":{"file":"notes.txt"}}`, `{"redact":{"patterns":{"file":"notes.txt"}}}`,
		`{"endorse":[{"name":"e","from":"a","to":"b","reason":{"file":"notes.txt"}}]}`,
	} {
		_, _, err := specfile.LoadPolicy("", "-", strings.NewReader(`{"policy":`+policy+`}`), nil)
		require.Error(t, err, policy)
		require.NotContains(t, err.Error(), "canary-4711")
	}
	_, p, err := specfile.LoadPolicy("", "-", strings.NewReader(`{"policy":{"redact":{"patterns":[{"name":"x","regexp":"${HOME}"}]}}}`), nil)
	require.NoError(t, err)
	require.Equal(t, "${HOME}", p.Redact.Patterns[0].Regexp)
}

// A policy that comes from elsewhere has no other key, in whichever way its lines end.
func TestAPolicyFromElsewhereHasNoOtherKey(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("notes.txt", []byte("canary-4711"), 0o600))
	for _, end := range []string{"\n", "\r\n", "\r"} {
		text := strings.ReplaceAll("policy:\n  default: minimal\nmodel: m\nagents: [{name: a, systemPrompt: {file: notes.txt}}]\n", "\n", end)
		_, _, err := specfile.LoadPolicyText([]byte(text), nil)
		require.ErrorContains(t, err, `"model": a policy has no other key`, "%q", end)
		require.NotContains(t, err.Error(), "canary")
		_, p, err := specfile.LoadPolicyText([]byte("policy:"+end+"  default: minimal"+end), nil)
		require.NoError(t, err, "%q", end)
		require.Equal(t, handoff.Minimal, p.Default)
	}
}

// A file that a run never gets, because it has other problems, is checked with the names of the run.
func TestAllProblemsOfAPolicyFileAreReported(t *testing.T) {
	t.Parallel()
	const text = "policy:\n  rules:\n    - {from: reader, to: wirter, mode: full}\n    - {from: reader, mode: fulll}\n    - {from: wrtier, to: reader, mode: full}\n"
	for want, members := range map[int]func() []string{4: func() []string { return []string{"reader", "writer", "tool:send"} }, 2: nil} {
		_, _, err := specfile.LoadPolicy("", "-", strings.NewReader(text), members)
		found, ok := errors.AsType[*specfile.Error](err)
		require.True(t, ok)
		require.Len(t, found.Problems, want, "%v", err)
		require.True(t, slices.IsSortedFunc(found.Problems, func(a, b specfile.Problem) int { return cmp.Compare(a.Line, b.Line) }), "%v", err)
		require.Equal(t, want == 4, strings.Contains(err.Error(), `unknown agent "wirter"`) && strings.Contains(err.Error(), `unknown agent "wrtier"`), "%v", err)
		require.ErrorContains(t, err, `rule 2: to: it is missing`)
	}
}

// What is missing is shown with a value, so that nobody has to look up what belongs there.
func TestRequiredKeysHaveExamples(t *testing.T) {
	t.Parallel()
	for key, example := range specfile.Required() {
		require.NotEmpty(t, example, key)
	}
	require.Empty(t, specfile.Unneeded())
}
