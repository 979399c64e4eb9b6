package journaltest

import (
	"context"

	"github.com/runteam/runteam/internal/record"
)

// Opened returns a store of one run that is open already. Whoever opened it closes it:
// the end of a run of a team leaves it open.
func Opened(log record.Log) record.Store { return openedStore{log} }

type openedStore struct{ record.Log }

func (o openedStore) OpenRun(context.Context, record.Opening) (record.Log, error) { return o, nil }

func (o openedStore) LoadRun(context.Context, string) (*record.History, error) {
	return o.History(), nil
}

func (o openedStore) Close(context.Context) (string, error) { return "", nil }

// Cached returns the cached answers of other runs under a key.
func Cached(ctx context.Context, log record.Log, key record.Key) (list []*record.AgentCall, err error) {
	for answer, err := range log.CachedAnswers(ctx, key) {
		if err != nil {
			return nil, err
		}
		list = append(list, answer)
	}
	return list, nil
}
