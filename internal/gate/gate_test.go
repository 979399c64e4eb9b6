package gate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// A fault is one defect of an offer that would pass without it.
type fault struct {
	name   string
	break_ func(*testing.T, *gate.Compartment, *gate.Offer)
	rule   handoff.Rule
	reason string
	code   string
}

// faults lists what the gate checks, in the order of its checks.
var faults = []fault{
	{"the contract is over", func(_ *testing.T, c *gate.Compartment, _ *gate.Offer) {
		c.Contract.ExpiresAt = noon
	}, gate.RuleContract, gate.ReasonExpired, gate.CodeWithheld},
	{"there is no result", func(_ *testing.T, _ *gate.Compartment, o *gate.Offer) {
		o.Envelope, o.Status = nil, task.Failed
	}, gate.RuleStatus, gate.ReasonFailed, gate.CodeWithheld},
	{"it was altered", func(t *testing.T, _ *gate.Compartment, o *gate.Offer) {
		if o.Envelope != nil {
			o.Envelope = tampered(t, o.Envelope)
		}
	}, gate.RuleDigest, gate.ReasonTampered, gate.CodeWithheld},
	{"it has expired", func(t *testing.T, _ *gate.Compartment, o *gate.Offer) {
		remake(t, o, func(r *envelope.Record) { r.CreatedAt, r.ExpiresAt = noon.Add(-10*time.Second), noon })
	}, gate.RuleExpiry, gate.ReasonExpired, gate.CodeWithheld},
	{"nothing grants it", func(_ *testing.T, c *gate.Compartment, _ *gate.Offer) {
		c.Contract.Grants = nil
	}, gate.RuleGrant, gate.ReasonRule, gate.CodeWithheld},
	{"it is above the reader", func(_ *testing.T, c *gate.Compartment, _ *gate.Offer) {
		c.Contract.Clearance = label.Internal
	}, gate.RuleClearance, gate.ReasonClearance, gate.CodeWithheld},
	{"it is above the contract", func(_ *testing.T, c *gate.Compartment, _ *gate.Offer) {
		c.Contract.MaxInput = label.Internal
	}, gate.RuleClearance, gate.ReasonClearance, gate.CodeWithheld},
	{"it has no structured result", func(_ *testing.T, _ *gate.Compartment, o *gate.Offer) {
		o.As = task.Structured
	}, gate.RulePayload, gate.ReasonRule, gate.CodeStructuredMissing},
	{"it is too large to redact", func(t *testing.T, _ *gate.Compartment, o *gate.Offer) {
		remake(t, o, func(r *envelope.Record) { r.Text = strings.Repeat("x", gate.MaxRedact+1) })
	}, gate.RuleSize, gate.ReasonRule, gate.CodeWithheld},
}

// remake changes the envelope of an offer and gives it a digest of its own
// again, unless it was altered before.
func remake(t *testing.T, o *gate.Offer, change func(*envelope.Record)) {
	if o.Envelope == nil {
		return
	}
	r, genuine := o.Envelope.Record(), o.Envelope.Genuine() == nil
	change(&r)
	e, err := r.Envelope()
	require.NoError(t, err)
	if genuine {
		e, err = envelope.New(r.Header, e.Open())
		require.NoError(t, err)
	}
	o.Envelope = e
}

func TestEachCheckWithholdsAlone(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			c, o := newCompartment(t), offer(t, envelope.Text("numbers"))
			f.break_(t, c, o)
			requireWithheld(t, c, o, f.rule, f.reason, f.code)
		})
	}
}

// requireWithheld holds the gate to a rule: a required offer fails, an optional one
// becomes a line, and no byte is delivered.
func requireWithheld(t *testing.T, c *gate.Compartment, o *gate.Offer, rule handoff.Rule, why string, code string) gate.Ruling {
	t.Helper()
	r := decide(t, c, o)
	require.Equal(t, gate.Withheld, r.Verdict)
	require.Equal(t, rule, r.Rule)
	require.Equal(t, why, r.Reason)
	require.NotEmpty(t, r.Detail)
	require.Zero(t, r.BytesAfter)
	require.Empty(t, r.Redacted)

	s, err := c.GateOutbound(t.Context(), o, noon)
	held, ok := errors.AsType[*gate.WithheldError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, code, held.Code())
	require.Equal(t, r.Decision, held.Decision)
	require.Contains(t, held.Error(), string(rule))
	require.Zero(t, s.Payload())
	require.Error(t, s.For(&c.Contract))

	line := *o
	line.Optional = true
	s, err = c.GateOutbound(t.Context(), &line, noon)
	require.NoError(t, err)
	require.True(t, s.Withheld())
	require.Equal(t, why, s.Decision().Reason)
	require.Zero(t, s.Payload().Size())
	require.NoError(t, s.For(&c.Contract))
	return r
}

func TestChecksRunInOrder(t *testing.T) {
	t.Parallel()
	for i, first := range faults {
		for _, second := range faults[i+1:] {
			t.Run(first.name+" and "+second.name, func(t *testing.T) {
				t.Parallel()
				c, o := newCompartment(t), offer(t, envelope.Text("numbers"))
				first.break_(t, c, o)
				second.break_(t, c, o)
				require.Equal(t, first.rule, decide(t, c, o).Rule)
			})
		}
	}
}

// Requirement: G1.
func TestNothingIsDeliveredWithoutAGrant(t *testing.T) {
	t.Parallel()
	five := `{"a":1,"b":2,"c":{"d":3},"e":[4],"f":"x"}`
	other := gate.Source{Kind: handoff.Input, Name: "t-up"} // an input that is called as the task
	for name, grants := range map[string][]gate.Grant{
		"nil":           nil,
		"empty":         {},
		"without paths": {{Source: upstream}},
		"empty paths":   {{Source: upstream, Paths: []task.Path{}}},
		"another name":  {gate.WholeOf(gate.Source{Kind: handoff.Dependency, Name: "t-Up"}, "")},
		"another kind":  {gate.WholeOf(other, "")},
		"no source":     {{Paths: []task.Path{task.Whole}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCompartment(t, func(k *gate.Contract) { k.Grants = grants }) // some are none that a handshake takes
			for _, as := range []task.Payload{task.Output, task.Structured, task.Both} {
				o := offer(t, structured(t, five))
				o.As = as
				r := requireWithheld(t, c, o, gate.RuleGrant, gate.ReasonRule, gate.CodeWithheld)
				require.Equal(t, []task.Path{"/*", "/*", "/*", "/*", "/*"}, r.Parts().Dropped, "five dropped, and no key is named")
			}
			r := requireWithheld(t, c, offer(t, envelope.Text(five)), gate.RuleGrant, gate.ReasonRule, gate.CodeWithheld)
			require.Equal(t, []task.Path{task.Whole}, r.Parts().Dropped, "a text is one value")
		})
	}
}

// Requirement: G1.
func TestZeroCompartmentLetsNothingThrough(t *testing.T) {
	t.Parallel()
	var c gate.Compartment
	for _, level := range []label.Classification{label.Public, label.Internal, label.Secret} {
		o := offer(t, envelope.Text("numbers"), func(h *envelope.Header) { h.Classification = level })
		r := decide(t, &c, o)
		require.Equal(t, gate.Withheld, r.Verdict)
		_, err := c.GateOutbound(t.Context(), o, noon)
		require.Error(t, err)
	}
	o := offer(t, envelope.Text("numbers"))
	o.Source = gate.Source{}
	c.Contract.Grants = []gate.Grant{gate.WholeOf(gate.Source{}, "")}
	c.Contract.MaxInput = label.Secret
	require.Equal(t, gate.Withheld, decide(t, &c, o).Verdict, "a source of no kind is never granted")
	require.Equal(t, gate.Withheld, gate.Verdict(0), "the zero verdict holds")
	require.Equal(t, "held", gate.Verdict(9).String())
}

// Requirement: G15.
func TestSecretNeedsARuleForTheExactPair(t *testing.T) {
	t.Parallel()
	secret := func(k *gate.Contract) {
		k.Clearance, k.MaxInput, k.MaxOutput = label.Secret, label.Secret, label.Secret
	}
	top := func(h *envelope.Header) { h.Classification = label.Secret }
	requireWithheld(t, newCompartment(t, secret), offer(t, envelope.Text("x"), top), gate.RuleSecret, gate.ReasonRule, gate.CodeWithheld)

	self := newCompartment(t, secret, func(k *gate.Contract) { k.Callee = "analyst" })
	requireWithheld(t, self, offer(t, envelope.Text("x"), top), gate.RuleSecret, gate.ReasonRule, gate.CodeWithheld)

	input := granted(t, []gate.Grant{gate.WholeOf(gate.Source{Kind: handoff.Input, Name: "in"}, "uses")}, secret)
	o := offer(t, envelope.Text("x"), top, func(h *envelope.Header) { h.Producer = handoff.User })
	o.Source = gate.Source{Kind: handoff.Input, Name: "in"}
	requireWithheld(t, input, o, gate.RuleSecret, gate.ReasonRule, gate.CodeWithheld)

	seal(t, newCompartment(t, secret), offer(t, envelope.Text("x"))) // confidential still crosses
}

// Requirement: G15.
func TestZeroLabelIsInternal(t *testing.T) {
	t.Parallel()
	unlabelled := func(h *envelope.Header) { h.Classification = 0 }
	requireWithheld(t, newCompartment(t, func(k *gate.Contract) { k.MaxInput = label.Public }), offer(t, envelope.Text("x"), unlabelled),
		gate.RuleClearance, gate.ReasonClearance, gate.CodeWithheld)
	s := seal(t, newCompartment(t, func(k *gate.Contract) { k.MaxInput = label.Internal }), offer(t, envelope.Text("x"), unlabelled))
	require.Equal(t, label.Internal, s.Decision().After)
}

// Requirement: G16.
func TestFreshAtTheGate(t *testing.T) {
	t.Parallel()
	lives := func(h *envelope.Header) { h.ExpiresAt = noon.Add(10 * time.Second) }
	for _, tt := range []struct {
		at     time.Duration
		passes bool
	}{{-1, false}, {0, true}, {9999 * time.Millisecond, true}, {10 * time.Second, false}, {time.Hour, false}} {
		r, err := newCompartment(t).Decide(t.Context(), offer(t, envelope.Text("x"), lives), noon.Add(tt.at))
		require.NoError(t, err)
		require.Equal(t, tt.passes, r.Verdict == gate.Passed, "at %v", tt.at)
		if !tt.passes {
			require.Equal(t, gate.RuleExpiry, r.Rule)
			require.Equal(t, gate.ReasonExpired, r.Reason)
		}
	}
}

// Requirement: G16.
func TestContractBoundsCopies(t *testing.T) {
	t.Parallel()
	c := newCompartment(t, func(k *gate.Contract) { k.ExpiresAt = noon.Add(10 * time.Second) })
	for at, want := range map[time.Duration]gate.Verdict{0: gate.Passed, 9999 * time.Millisecond: gate.Passed, 10 * time.Second: gate.Withheld} {
		r, err := c.Decide(t.Context(), offer(t, envelope.Text("x")), noon.Add(at))
		require.NoError(t, err)
		require.Equal(t, want, r.Verdict, "at %v", at)
	}
}

// Requirement: G33.
func TestWithheldLineNamesTheReason(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status task.Status
		want   string
	}{
		{task.Failed, gate.ReasonFailed}, {task.Skipped, gate.ReasonSkipped},
		{task.Completed, gate.ReasonRule}, {task.Pending, gate.ReasonRule}, {"", gate.ReasonRule},
	}
	for _, tt := range tests {
		o := offer(t, envelope.Text("x"))
		o.Envelope, o.Status = nil, tt.status
		r := requireWithheld(t, newCompartment(t), o, gate.RuleStatus, tt.want, gate.CodeWithheld)
		require.Equal(t, "analyst", r.From, "who was to do it")
	}
}

func TestFormsOfAPayload(t *testing.T) {
	t.Parallel()
	both := structured(t, `{"b":1,"a":2}`).WithText("words")
	tests := []struct {
		name string
		give envelope.Payload
		as   task.Payload
		want envelope.Payload
		rule handoff.Rule
	}{
		{"output of a text", envelope.Text("words"), task.Output, envelope.Text("words"), ""},
		{"nothing asked for is output", envelope.Text("words"), "", envelope.Text("words"), ""},
		{"output of both leaves the JSON behind", both, task.Output, envelope.Text("words"), ""},
		{"output of JSON only is the JSON", structured(t, `[1]`), task.Output, structured(t, `[1]`), ""},
		{"structured of both leaves the text behind", both, task.Structured, structured(t, `{"a":2,"b":1}`), ""},
		{"both", both, task.Both, both, ""},
		{"both of JSON only", structured(t, `[1]`), task.Both, structured(t, `[1]`), ""},
		{"structured of a text", envelope.Text(`{"a":1}`), task.Structured, envelope.Payload{}, gate.RulePayload},
		{"both of a text", envelope.Text(`{"a":1}`), task.Both, envelope.Payload{}, gate.RulePayload},
		{"output of nothing", envelope.Payload{}, task.Output, envelope.Payload{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := offer(t, tt.give)
			o.As = tt.as
			if tt.rule != "" {
				requireWithheld(t, newCompartment(t), o, tt.rule, gate.ReasonRule, gate.CodeStructuredMissing)
				return
			}
			s := seal(t, newCompartment(t), o)
			require.Equal(t, tt.want, s.Payload())
		})
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	t.Run("the largest value that can be redacted is cut", func(t *testing.T) {
		t.Parallel()
		s := text(t, x(gate.MaxRedact))
		require.Equal(t, gate.DefaultContextBytes, s.Payload().Size())
		require.Equal(t, gate.MaxRedact, s.Decision().CutFrom)
		require.True(t, s.Decision().Truncated)
		require.Equal(t, gate.DefaultContextBytes, s.Decision().BytesAfter)
	})
	t.Run("256 KiB stay whole", func(t *testing.T) {
		t.Parallel()
		s := text(t, x(gate.DefaultContextBytes))
		require.Equal(t, gate.DefaultContextBytes, s.Payload().Size())
		require.Zero(t, s.Decision().CutFrom)
		require.False(t, s.Decision().Truncated)
	})
	for _, limit := range []int{1, 1000, gate.DefaultStructuredBytes + 1, 700 << 10} {
		t.Run(fmt.Sprintf("a grant of at most %d bytes", limit), func(t *testing.T) {
			t.Parallel()
			c := newCompartment(t)
			c.Contract.Grants[0].MaxBytes = limit
			for n, cut := range map[int]bool{limit: false, limit + 1: true} {
				s := seal(t, c, offer(t, envelope.Text(x(n))))
				require.Equal(t, limit, s.Payload().Size())
				require.Equal(t, cut, s.Decision().Truncated)
				if limit < 2 {
					continue
				}
				o := offer(t, structured(t, `"`+x(n-2)+`"`))
				if o.As = task.Structured; cut {
					requireWithheld(t, c, o, gate.RuleStructuredSize, gate.ReasonRule, gate.CodeTooLarge)
				} else {
					s := seal(t, c, o)
					require.Equal(t, limit, s.Payload().Size())
				}
			}
		})
	}
	t.Run("both parts count for the largest value that can be redacted", func(t *testing.T) {
		t.Parallel()
		o := offer(t, structured(t, `"`+x(1000)+`"`).WithText(x(gate.MaxRedact-1001)))
		o.As = task.Both
		requireWithheld(t, newCompartment(t), o, gate.RuleSize, gate.ReasonRule, gate.CodeWithheld)
	})
	t.Run("structured of 64 KiB is whole", func(t *testing.T) {
		t.Parallel()
		o := offer(t, structured(t, `"`+x(gate.DefaultStructuredBytes-2)+`"`))
		o.As = task.Structured
		s := seal(t, newCompartment(t), o)
		require.Equal(t, gate.DefaultStructuredBytes, s.Payload().Size())
	})
	for _, as := range []task.Payload{task.Output, task.Structured, task.Both} {
		t.Run("structured is never cut "+string(as), func(t *testing.T) {
			t.Parallel()
			limit := gate.DefaultStructuredBytes
			if as == task.Output {
				limit = gate.DefaultContextBytes
			}
			o := offer(t, structured(t, `"`+x(limit-1)+`"`))
			o.As = as
			requireWithheld(t, newCompartment(t), o, gate.RuleStructuredSize, gate.ReasonRule, gate.CodeTooLarge)
		})
	}
	t.Run("structured that redaction makes too large is held", func(t *testing.T) {
		t.Parallel()
		var b strings.Builder // each value becomes a longer placeholder
		for i := range 2500 {
			fmt.Fprintf(&b, `,{"password":"Zq7!x%04d"}`, i)
		}
		o := offer(t, structured(t, "["+b.String()[1:]+"]"))
		o.As = task.Structured
		require.Less(t, o.Envelope.Open().Size(), gate.DefaultStructuredBytes)
		requireWithheld(t, newCompartment(t), o, gate.RuleStructuredSize, gate.ReasonRule, gate.CodeTooLarge)
	})
	t.Run("parts that are withheld are not listed as kept", func(t *testing.T) {
		t.Parallel()
		c := granted(t, []gate.Grant{{Source: upstream, Paths: []task.Path{"/a"}, MaxBytes: 8}})
		r := requireWithheld(t, c, offer(t, structured(t, `{"a":"much longer","b":1}`)), gate.RuleStructuredSize, gate.ReasonRule, gate.CodeTooLarge)
		require.True(t, r.Parts().InPart)
		require.Empty(t, r.Parts().Kept)
	})
	t.Run("beside a structured part the text gets the rest", func(t *testing.T) {
		t.Parallel()
		o := offer(t, structured(t, `"`+x(998)+`"`).WithText(x(gate.DefaultStructuredBytes)))
		o.As = task.Both
		s := seal(t, newCompartment(t), o)
		canonical, _ := s.Payload().JSON()
		require.Len(t, canonical, 1000)
		require.Len(t, s.Payload().Text(), gate.DefaultStructuredBytes-1000)
		require.Equal(t, gate.DefaultStructuredBytes, s.Decision().CutFrom)
	})
	t.Run("a person reads results whole", func(t *testing.T) {
		t.Parallel()
		c := newCompartment(t, func(k *gate.Contract) { k.Callee = handoff.User })
		s := seal(t, c, offer(t, envelope.Text(x(2*gate.MaxRedact))))
		require.Equal(t, 2*gate.MaxRedact, s.Payload().Size())
	})
}

func TestDecideIsPure(t *testing.T) {
	t.Parallel()
	give := structured(t, `{"k":"`+fakeToken+`","<s>":1}`).WithText("<|im_start|> " + fakeToken + strings.Repeat(" é", 40_000))
	o := offer(t, give)
	o.As = task.Both
	c := newCompartment(t)
	first := decide(t, c, o)
	before := c.Contract
	for range 3 {
		require.Equal(t, first, decide(t, c, o))
	}
	require.Equal(t, before, c.Contract)
	require.Equal(t, give, o.Envelope.Open())
	require.NoError(t, o.Envelope.Genuine())
	a, err := c.Seal(o, &first)
	require.NoError(t, err)
	b, err := c.Seal(o, &first)
	require.NoError(t, err)
	require.Equal(t, a, b)
}

// Requirement: G29.
func TestUnredactableValuesAreWithheld(t *testing.T) {
	t.Parallel()
	o := offer(t, envelope.Text("bad \xff byte"))
	o.Optional = true // not even a line: the gate could not decide
	r, err := newCompartment(t).Decide(t.Context(), o, noon)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "bad")
	require.Equal(t, gate.Withheld, r.Verdict)
	require.Equal(t, gate.RuleRedact, r.Rule)
	s, err := newCompartment(t).GateOutbound(t.Context(), o, noon)
	require.Error(t, err)
	require.Zero(t, s)
}

func TestGrantLineIsNamed(t *testing.T) {
	t.Parallel()
	r := requireWithheld(t, newCompartment(t, func(k *gate.Contract) { k.Clearance = label.Internal }), offer(t, envelope.Text("CANARY")),
		gate.RuleClearance, gate.ReasonClearance, gate.CodeWithheld)
	require.Equal(t, `dependency from "analyst" is withheld by clearance: it is confidential, and "writer" may see internal (team.yaml:12 dependsOn)`, r.Err().Error())
	require.NotContains(t, r.Err().Error(), "CANARY")
}

// A value that passes whole has as many bytes before the gate as behind it, in each form.
func TestAWholeValueKeepsItsSize(t *testing.T) {
	t.Parallel()
	v := structured(t, `{"a":1,"b":[2]}`)
	for _, as := range []task.Payload{"", task.Output, task.Structured, task.Both} {
		o := offer(t, v.WithText(`{"a": 1, "b": [2]}`))
		o.As = as
		d := decide(t, newCompartment(t), o)
		require.Equal(t, gate.Passed, d.Verdict, as)
		require.Equal(t, d.BytesAfter, d.BytesBefore, as)
		require.Zero(t, d.TokensSaved(), as)
	}
}
