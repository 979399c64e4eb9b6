package openai

import (
	"bytes"
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
	maxModels = 1000             // names that are kept of a list
	listLimit = 10 * time.Second // for reading it
)

// lookInto decides whether a 404 means the model or the address, by what the
// endpoint lists. Nothing else reads the list.
func (c *call) lookInto(ctx context.Context, e *llm.Error) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	models, offered := c.list(ctx)
	if len(models) > 0 && (e.Kind == llm.UnknownModel || !offered) {
		e.Kind, e.Models = llm.UnknownModel, models
	}
}

// list returns the names of the models that the endpoint offers, those that
// begin most like the model's own first, and reports whether its own is among them.
// It returns nothing if there is no list.
func (c *call) list(ctx context.Context) (names []string, offered bool) {
	l := &lister{model: c.model}
	_, _ = c.model.goOpenAI(l).ListModels(ctx) // it makes the request; l reads the reply
	own := c.model.name
	var d decoder
	d.open(l.body)
	err := d.object(func(name []byte) error {
		if string(name) != "data" {
			return d.tokens.SkipValue()
		}
		return d.array(func() error {
			return d.object(func(name []byte) error {
				if string(name) != "id" {
					return d.tokens.SkipValue()
				}
				id := d.words(maxForeign)
				if offered = offered || id == own; id != "" && len(names) < maxModels {
					names = append(names, id)
				}
				return nil
			})
		})
	})
	if err != nil {
		return nil, false
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(alike(b, own), alike(a, own)), cmp.Compare(a, b))
	})
	names = slices.Compact(names)
	for i, name := range names {
		if name != own {
			names[i] = c.sanitize(name)
		}
	}
	return names, offered
}

// alike counts the bytes with which both names begin.
func alike(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && strings.EqualFold(a[n:n+1], b[n:n+1]) {
		n++
	}
	return n
}

// A lister is the HTTP client that reads the list: signed, and of bounded size.
type lister struct {
	model *Model
	body  []byte
}

// Do sends r and keeps the body of the reply. It always returns an error.
func (l *lister) Do(r *http.Request) (*http.Response, error) {
	l.model.sign(r)
	res, err := l.model.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, errors.New("no list")
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(io.LimitReader(res.Body, maxList)); err != nil {
		return nil, err
	}
	l.body = body.Bytes()
	return nil, errTaken
}
