package event_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/event"
)

func TestTimesAreMilliseconds(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(event.Event{Seq: 3, Type: event.TaskRetry, Time: time.Unix(0, 0).UTC(), Run: "r", Task: "t", Attempt: 1, Problem: event.Problem{Wait: 1500 * time.Millisecond}})
	require.NoError(t, err)
	require.JSONEq(t, `{"seq":3,"type":"task_retry","time":"1970-01-01T00:00:00Z","runId":"r","task":"t","attempt":1,"waitMs":1500}`, string(got))
}
