package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// lowering is a policy that lets a score out.
func lowering(from, to string, lowerTo label.Classification) handoff.Declassifier {
	return handoff.Declassifier{Entry: handoff.Entry{Name: "score of " + from + " to " + to, From: from, To: to, Reason: "a number"}, Paths: []task.Path{"/score"}, LowerTo: lowerTo}
}

// scorer is a task of maker with a confidential result.
func scorer(schema string) task.Spec {
	s := spec("maker")
	s.Classification = label.Confidential
	if schema != "" {
		s.OutputSchema = []byte(schema)
	}
	return s
}

// scoreOnly is a schema that bounds every value of a result.
const scoreOnly = `{"type":"object","additionalProperties":false,"required":["score"],"properties":{"score":{"type":"integer"}}}`

// What an entry can never lower, and an endorsement that nobody reads, is told
// before a run.
func TestIneffectiveEntriesAreWarnings(t *testing.T) {
	t.Parallel()
	lower := lowering("maker", "reader", label.Internal)
	high := lowering("maker", "reader", label.Confidential)
	endorse := handoff.Endorser{Entry: handoff.Entry{Name: "read", From: "maker", To: handoff.User, Reason: "r"}}
	tests := []struct {
		name   string
		policy handoff.Policy
		level  label.Classification
		bus    bool
		want   string
	}{
		{"it lowers", handoff.Policy{Declassify: []handoff.Declassifier{lower}}, label.Confidential, false, ""},
		{
			"nothing is above", handoff.Policy{Declassify: []handoff.Declassifier{lower}}, label.Internal, false,
			`/policy/declassify/0/lowerTo "score of maker to reader": no effect here: context from "maker" is at most internal, and lowerTo is not below that`,
		},
		{
			"what a bus brings has any label", handoff.Policy{Declassify: []handoff.Declassifier{lower}}, label.Internal,
			true, "",
		},
		{
			"above its reader", handoff.Policy{Declassify: []handoff.Declassifier{high}}, label.Internal, false,
			`/policy/declassify/0/lowerTo "score of maker to reader": no effect here: "reader" may see internal, and lowerTo is above that`,
		},
		{
			"endorsed for the caller", handoff.Policy{Endorse: []handoff.Endorser{endorse}}, label.Internal, false,
			`/policy/endorse/0/to "read": no effect here: the caller has no system prompt`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := governed(t, &tt.policy, cleared("maker", label.Confidential), member("reader"), cleared("third", label.Confidential))
			s := scorer(scoreOnly)
			s.Classification = tt.level
			third := spec("third")
			third.Classification = label.Confidential
			o := &plan.Options{}
			if tt.bus {
				bus, err := mailbox.New(r.Names(), mailbox.Options{})
				require.NoError(t, err)
				o.Bus = bus
			}
			p, err := r.plan([]task.Spec{s, spec("reader", "maker"), third}, o)
			require.NoError(t, err)
			var got []string
			for _, w := range p.Warnings {
				got = append(got, w.Pointer+" "+w.Error())
			}
			require.Equal(t, tt.want, strings.Join(got, "\n"))
		})
	}
}

func TestToolsThatShareStateCannotLowerLabels(t *testing.T) {
	t.Parallel()
	stateful := func(name, state string, accepts label.Classification) *tool.Tool {
		return newTool(t, name, tool.Options{Stateful: true, State: state, Accepts: accepts})
	}
	for _, tt := range []struct {
		name  string
		tools []*tool.Tool
		want  string
	}{
		{"the second produces less", []*tool.Tool{stateful("put", "store", label.Confidential), stateful("get", "store", label.Internal)}, `tool "put" accepts confidential, and tool "get", which shares its state, produces internal: raise Produces of "get" to confidential, or set another State`},
		{"the first produces less", []*tool.Tool{stateful("get", "store", label.Internal), stateful("put", "store", label.Confidential)}, `tool "put" accepts confidential, and tool "get", which shares its state, produces internal`},
		{"the state of one is the name of the other", []*tool.Tool{stateful("store", "", label.Confidential), stateful("get", "store", label.Public)}, `tool "store" accepts confidential, and tool "get", which shares its state, produces public`},
		{"equal labels", []*tool.Tool{stateful("put", "store", label.Internal), stateful("get", "store", label.Internal)}, ""},
		{"states of their own", []*tool.Tool{stateful("put", "", label.Confidential), stateful("get", "", label.Internal)}, ""},
	} {
		one, two := clerk("clerk", tt.tools[0]), clerk("other", tt.tools[1])
		_, err := newRoster(plan.Config{Agents: []plan.Member{one, two}})
		if tt.want == "" {
			require.NoError(t, err, tt.name)
			continue
		}
		require.ErrorContains(t, err, tt.want, tt.name)
		require.ErrorIs(t, err, task.ErrInvalid)
	}
}
