package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
)

const (
	maxList   = 1 << 20          // bytes of a list of models
	maxModels = 1000             // names that are used of a list
	listLimit = 10 * time.Second // for reading it
)

// explainNotFound decides whether a 404 is about the model or the address, by the models that
// the endpoint lists.
func (p *reporter) explainNotFound(ctx context.Context, e *llm.Error) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	models, offered := p.list(ctx)
	if len(models) > 0 && (e.Kind == callfault.UnknownModel || !offered) {
		e.Kind, e.Err = callfault.UnknownModel, &callfault.OfferError{Models: models}
	}
}

// list returns the names of the models that the endpoint offers, those that
// begin most like the model's own first, and reports whether its own is among them.
// It returns nothing if there is no list.
func (p *reporter) list(ctx context.Context) (names []string, offered bool) {
	res, err := p.model.do(ctx, http.MethodGet, "/models", nil, "application/json")
	if err != nil {
		return nil, false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxList))
	if err != nil || res.StatusCode != http.StatusOK {
		return nil, false
	}
	var list struct{ Data []struct{ ID any } }
	if json.Unmarshal(body, &list) != nil {
		return nil, false
	}
	own := p.model.name
	for _, m := range list.Data {
		id := textOf(m.ID, maxServerText)
		if offered = offered || id == own; id != "" && len(names) < maxModels {
			names = append(names, id)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(commonPrefix(b, own), commonPrefix(a, own)), cmp.Compare(a, b))
	})
	names = slices.Compact(names)
	for i, name := range names {
		if name != own {
			names[i] = p.clean.sanitize(name)
		}
	}
	return names, offered
}

// commonPrefix returns the length of the start that both names have, in any case.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && strings.EqualFold(a[n:n+1], b[n:n+1]) {
		n++
	}
	return n
}
