package openai

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/llm"
)

const (
	maxList   = 1 << 20          // of a list of models, in bytes
	listLimit = 10 * time.Second // for reading it
)

// lookInto says whether a 404 means the model or the address, by what the
// endpoint lists. Nothing else reads the list.
func (m *Model) lookInto(ctx context.Context, e *llm.Error) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	models, err := m.list(ctx)
	if err != nil {
		return
	}
	if e.Kind == llm.UnknownModel || !slices.Contains(models, m.name) {
		e.Kind, e.Models = llm.UnknownModel, models
	}
}

// list returns the names of the models that the endpoint offers, those that begin most like m's own first.
func (m *Model) list(ctx context.Context) ([]string, error) {
	listed, err := m.goOpenAI(lister{m}).ListModels(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, l := range listed.Models {
		if l.ID != "" {
			names = append(names, llm.OneLine(l.ID))
		}
	}
	if len(names) == 0 {
		return nil, errors.New("an empty list")
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(alike(b, m.name), alike(a, m.name)), cmp.Compare(a, b))
	})
	return slices.Compact(names), nil
}

// alike counts the bytes with which both names begin.
func alike(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && strings.EqualFold(a[n:n+1], b[n:n+1]) {
		n++
	}
	return n
}

// lister is the HTTP client that reads the list: signed, and of bounded size.
type lister struct{ model *Model }

func (l lister) Do(r *http.Request) (*http.Response, error) {
	l.model.sign(r)
	res, err := l.model.client.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, errors.New("no list")
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, maxList), res.Body}
	return res, nil
}
