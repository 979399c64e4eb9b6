package label_test

import (
	"encoding/json"
	"testing"

	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	classes = rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Confidential, label.Secret})
	trusts  = rapid.SampledFrom([]label.Trust{label.Untrusted, label.Endorsed})
)

// Requirement: G13.
func TestLatticeLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := classes.Draw(t, "a"), classes.Draw(t, "b"), classes.Draw(t, "c")
		require.Equal(t, a, a.Join(a), "idempotent")
		require.Equal(t, a.Join(b), b.Join(a), "commutative")
		require.Equal(t, a.Join(b).Join(c), a.Join(b.Join(c)), "associative")
		require.GreaterOrEqual(t, a.Join(b), a, "never falls")
		require.Equal(t, a, a.Join(label.Public), "public is neutral")

		u, v, w := trusts.Draw(t, "u"), trusts.Draw(t, "v"), trusts.Draw(t, "w")
		require.Equal(t, u, u.Join(u), "idempotent")
		require.Equal(t, u.Join(v), v.Join(u), "commutative")
		require.Equal(t, u.Join(v).Join(w), u.Join(v.Join(w)), "associative")
		require.LessOrEqual(t, u.Join(v), u, "never rises")
		require.Equal(t, u, u.Join(label.Endorsed), "endorsed is neutral")
	})
}

// Requirement: G15.
func TestZeroLabelIsInternal(t *testing.T) {
	t.Parallel()
	var c label.Classification
	var tr label.Trust
	require.Equal(t, label.Internal, c)
	require.Equal(t, label.Untrusted, tr)
}

func TestLevelsAreOrdered(t *testing.T) {
	t.Parallel()
	require.Less(t, label.Public, label.Internal)
	require.Less(t, label.Internal, label.Confidential)
	require.Less(t, label.Confidential, label.Secret)
}

func TestNamesGoBothWays(t *testing.T) {
	t.Parallel()
	for _, name := range label.Classifications() {
		c, err := label.ParseClassification(name)
		require.NoError(t, err)
		require.Equal(t, name, c.String())
		var back label.Classification
		text, err := json.Marshal(c)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, c, back)
	}
	for _, tr := range []label.Trust{label.Untrusted, label.Endorsed} {
		text, err := tr.MarshalText()
		require.NoError(t, err)
		var back label.Trust
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, tr, back)
	}
}

func TestUnknownNamesErrOnTheSafeSide(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"", "Secret", "top-secret", " internal", "public "} {
		c, err := label.ParseClassification(word)
		require.ErrorIs(t, err, label.ErrUnknown, word)
		require.Equal(t, label.Secret, c, word)
	}
	tr := label.Endorsed
	require.ErrorIs(t, tr.UnmarshalText([]byte("yes")), label.ErrUnknown)
	require.Equal(t, label.Untrusted, tr)
	_, err := label.Classification(9).MarshalText()
	require.ErrorIs(t, err, label.ErrUnknown)
	require.Equal(t, "classification(9)", label.Classification(9).String())
}
