package gate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/redact"
)

// ErrUnfenced reports words that no prompt may show without a fence.
var ErrUnfenced = errors.New("may not stand unfenced")

// CheckUnfenced reports why short words that are written into a prompt without a fence, such
// as a planned title or a role, may not: they are not one clean line ([naming.ErrLine]), or
// the gate would have to break a control token of a chat template in them or redact a secret
// or personal data. The error says which, and never quotes the words. It wraps
// [ErrUnfenced].
func CheckUnfenced(line string) error {
	if err := naming.CheckLine(line); err != nil {
		return fmt.Errorf("%w: %w", ErrUnfenced, err)
	}
	if _, n := breakTokens(line); n > 0 {
		return fmt.Errorf("%w: a control token of a chat template is in it", ErrUnfenced)
	}
	_, counts, err := redact.Default().Text(line)
	if err != nil {
		return fmt.Errorf("%w: it cannot be checked for secrets: %w", ErrUnfenced, err)
	}
	if len(counts) == 0 {
		return nil
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		kinds = append(kinds, string(kind))
	}
	return fmt.Errorf("%w: a secret or personal data is in it (%s)", ErrUnfenced, strings.Join(kinds, ", "))
}
