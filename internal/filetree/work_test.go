package filetree_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/matcher"
)

// rewritten returns the patch of a task that writes the placeholders of a line into another one.
func rewritten(given, plain string, placeholders []string) (string, error) {
	line := "!" + strings.Join(placeholders, ",") + "\n"
	return filetree.Patch(filetree.Tree{"f": &line}, filetree.Tree{"f": new(given + "\n")}, map[string]*filetree.Original{"f": {Text: plain + "\n"}})
}

// A placeholder stands for what both a reluctant and a greedy expression find in its place.
func TestPlaceholdersStandForWhatIsCertain(t *testing.T) {
	t.Parallel()
	piece := rapid.StringOfN(rapid.RuneFrom([]rune("aabé")), 0, 3, -1)
	rapid.Check(t, func(t *rapid.T) {
		kept := rapid.SliceOfN(piece, 2, 4).Draw(t, "kept")
		given, plain, short, long := kept[0], kept[0], "(?s)^"+kept[0], "(?s)^"+kept[0]
		var placeholders []string
		for i, k := range kept[1:] {
			p := fmt.Sprintf("[REDACTED:k%d]", i)
			placeholders = append(placeholders, p)
			given, plain, short, long = given+p+k, plain+piece.Draw(t, "value")+k, short+"(.+?)"+k, long+"(.+)"+k
		}
		if rapid.Bool().Draw(t, "other") {
			plain = piece.Draw(t, "plain")
		}
		want := regexp.MustCompile(short + "$").FindStringSubmatch(plain)
		isCertain := want != nil && slices.Equal(want, regexp.MustCompile(long+"$").FindStringSubmatch(plain))
		patch, err := rewritten(given, plain, placeholders)
		require.Equal(t, isCertain, err == nil, "%v", err)
		if isCertain {
			require.Contains(t, patch, "+!"+strings.Join(want[1:], ",")+"\n")
		}
	})
}

func TestPlaceholdersOfALongLine(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	go func() {
		_, err := rewritten(strings.Repeat("ab [REDACTED:k] ", 50_000)+"!", strings.Repeat("ab ab ", 50_000)+"!", []string{"[REDACTED:k]"})
		ended <- err
	}()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("it takes long to find what placeholders stand for")
	}
}

func TestReadingAFolderEndsWithItsContext(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	var opened []string
	_, _, err := filetree.Read(ctx, opening(func(name string) {
		if opened = append(opened, name); len(opened) == 3 {
			cancel(stopped)
		}
	}), nil)
	require.ErrorIs(t, err, stopped)
	require.Len(t, opened, 3)
}

// opening is a folder of files that calls a function whenever a file is opened.
type opening func(name string)

func (o opening) Open(name string) (fs.File, error) {
	if name != "." {
		o(name)
	}
	return fstest.MapFS{"a": {}, "b": {}, "c": {}, "d": {}, "e": {}}.Open(name)
}

// Alternatives were tried one after the other for each path, so 30 pairs took 2^30 attempts.
func TestGlobsThatAreTooMuchWork(t *testing.T) {
	t.Parallel()
	deep := fstest.MapFS{strings.Repeat("x", 40): {}}
	_, _, err := filetree.Read(t.Context(), deep, []string{strings.Repeat("{x,x}", 30) + "!"})
	_, isLimit := errors.AsType[*matcher.LimitError](err)
	require.True(t, isLimit, "%v", err)
}
