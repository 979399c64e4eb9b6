package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/redact"
)

// ownEndpoints are the base URLs of a team's endpoints that events show although
// they hold an IP address: a user who configured http://10.0.0.5:8000/v1 needs to
// see which endpoint failed. Everything else in a message is redacted as before.
type ownEndpoints struct {
	names []string
	words *redact.Redactor
}

// newOwnEndpoints keeps those names in which nothing but an IP address would be
// redacted. A name with a secret, or one that a pattern of the policy matches,
// is redacted like any other text.
func newOwnEndpoints(names []string, words *redact.Redactor) *ownEndpoints {
	o := &ownEndpoints{words: words}
	for _, name := range names {
		_, found, err := words.Text(name)
		if kinds := slices.Sorted(maps.Keys(found)); err == nil && len(kinds) == 1 && kinds[0] == redact.IP {
			o.names = append(o.names, name)
		}
	}
	return o
}

// text returns a text without secrets and personal data, but with the team's own
// endpoints.
func (o *ownEndpoints) text(ctx context.Context, s string) (string, error) {
	standIns := make([]string, len(o.names))
	for i, name := range o.names {
		standIns[i] = fmt.Sprintf("[endpoint-%d]", i)
		s = replaceURL(s, name, standIns[i])
	}
	clean, _, _, err := o.words.TextRevealing(ctx, s, nil)
	if err != nil {
		return "", err
	}
	for i, name := range o.names {
		clean = strings.ReplaceAll(clean, standIns[i], name)
	}
	return clean, nil
}

// replaceURL replaces a URL where it ends: http://10.0.0.5 is not part of
// http://10.0.0.50 and not of http://10.0.0.5:8000.
func replaceURL(s, url, with string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, url)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if end := strings.TrimLeft(after, ":.,;"); end == "" || strings.ContainsRune(" \t\n", rune(end[0])) || after[0] == '/' || strings.ContainsRune(`)"'`, rune(end[0])) {
			b.WriteString(with)
		} else {
			b.WriteString(url)
		}
		s = after
	}
}
