package journal

import (
	"context"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
)

// OpenRun begins or resumes a run; see [record.Store].
func (j *Journal) OpenRun(ctx context.Context, o record.Opening) (record.Log, error) {
	if o.Resume {
		r, _, err := j.Resume(ctx, o.Run)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	info := Info{Run: o.Run, Name: o.Name, Time: o.Time}
	for i := range o.Inputs {
		in := &o.Inputs[i]
		info.Inputs = append(info.Inputs, trace.Input{Name: in.Name, Classification: in.Classification, Line: in.Line})
	}
	info.SetTurn(o.Turn)
	r, err := j.Begin(ctx, info)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// LoadRun reads a run; see [record.Store].
func (a *archive) LoadRun(ctx context.Context, run string) (*record.History, error) {
	s, err := a.Load(ctx, run)
	if err != nil {
		return nil, err
	}
	return &s.History, nil
}
