package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// prompts runs a spec without a model and returns what each task's agent was
// sent, system prompt and user message, and stdout.
func prompts(t *testing.T, spec string) (sent map[string]string, stdout string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	stdout, stderr, status := offline(t, spec, "--trace", file)
	require.Zero(t, status, stderr)
	explained, stderr, status := runteam(t, "", "explain", file, "-o", "json")
	require.Zero(t, status, stderr)
	type piece struct {
		Words    string
		Withheld bool
	}
	var x struct {
		Prompts []struct {
			Title        string
			System, Text []piece
		}
	}
	require.NoError(t, json.Unmarshal([]byte(explained), &x))
	sent = map[string]string{}
	for _, p := range x.Prompts {
		var b strings.Builder
		for _, piece := range append(p.System, p.Text...) {
			require.False(t, piece.Withheld, "a trace for whoever may see all of it")
			b.WriteString(piece.Words)
		}
		sent[p.Title] = b.String()
	}
	return sent, stdout
}

// requireSent holds that a prompt has some texts and lacks others.
func requireSent(t *testing.T, prompt string, has, lacks []string) {
	t.Helper()
	require.NotEmpty(t, prompt)
	for _, text := range has {
		require.Contains(t, prompt, text)
	}
	for _, text := range lacks {
		require.NotContains(t, prompt, text)
	}
}

func TestTicketAgentsRead(t *testing.T) {
	t.Parallel()
	sent, stdout := prompts(t, edited(t, "support-ticket"))
	card, mail, account := "4539", "nora.lindqvist@", "SE45 5000 0000 0583 9825 7466"
	notes := []string{"chargeback", "PAY-311"}
	require.Len(t, sent, 3)
	requireSent(t, sent["Sort the ticket"],
		append(notes, "My card is [REDACTED:card]", "write to [REDACTED:email]"),
		[]string{card, mail, "SE45", "+46"})
	requireSent(t, sent["Order the refund"],
		[]string{account, "Nora Lindqvist", `{"refund":"48.50","ticket":"T-20417"}`},
		append(notes, card, mail, "+46", "twice"))
	requireSent(t, sent["Write the reply"],
		[]string{`{"category":"payment","refund":"48.50","severity":4,"ticket":"T-20417"}`},
		append(notes, card, mail, "SE45", "+46", "Lindqvist", "twice", "REDACTED"))
	require.NotContains(t, stdout, card)
}

// TestReplyHasOnlyDeclassifiedParts changes all of the ticket but what the
// declassifier delivers, and finds the same reply.
func TestReplyHasOnlyDeclassifiedParts(t *testing.T) {
	t.Parallel()
	before, _ := prompts(t, edited(t, "support-ticket"))
	after, _ := prompts(t, edited(t, "support-ticket",
		edit{"ticket.json", "for the same lamp", "for the very same lamp"},
		edit{"ticket.json", "4539 1488 0343 6467", "4111 1111 1111 1111"},
		edit{"ticket.json", `"name": "Nora Lindqvist"`, `"name": "Ms Canary"`},
		edit{"ticket.json", "Known fault PAY-311", "Known fault CANARY-2"},
		edit{"ticket.json", "SE45 5000 0000 0583 9825 7466", "NO93 8601 1117 947"},
	))
	require.NotEqual(t, before["Sort the ticket"], after["Sort the ticket"])
	require.NotEqual(t, before["Order the refund"], after["Order the refund"])
	require.Equal(t, before["Write the reply"], after["Write the reply"])
}

func TestClaimAgentsRead(t *testing.T) {
	t.Parallel()
	sent, stdout := prompts(t, edited(t, "claims"))
	account, mail, phone := "IE30 TEST 9999 9904 5711 87", "aoife.brennan@", "912 0148"
	for title, prompt := range sent {
		require.NotContains(t, prompt, mail, title)
		require.NotContains(t, prompt, phone, title)
		if title != "Extract the facts" && title != "Letter to the customer" {
			require.NotContains(t, prompt, account, title)
		}
	}
	requireSent(t, sent["Extract the facts"], []string{account, "[REDACTED:email]", "[REDACTED:phone]"}, nil)
	requireSent(t, sent["Score the fraud risk"], []string{`"claims_of_household":"none"`}, []string{"Brennan", "Quay Terrace", "HL-2026"})
	requireSent(t, sent["Check the cover"], []string{`"claimed":{"repair":"12,635.00"}`, `"nights_away":6`}, []string{"Brennan", "Quay Terrace", "contradictions"})
	requireSent(t, sent["Letter to the customer"], []string{account, "Brennan", "complaints@harbourline.example"}, []string{"contradictions", "fraud_score", "The fraud score"})
	requireSent(t, sent["Note for the file"], []string{"The fraud score is 0.15"}, nil)
	requireSent(t, sent["Line for the statistics"], []string{`{"outcome":"pay","payment":"12,455.00"}`, `{"fraud_score":0.15}`}, []string{"Brennan", "covered", "receipt", "HL-"})
	require.Contains(t, stdout, "The fraud score is 0.15; claims are referred from 0.60.")
}

// TestUnboundedPartsAreNotDeclassified breaks each example's policy at one place, and finds it refused.
func TestUnboundedPartsAreNotDeclassified(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, example string
		edit          edit
		want          string // in stderr
	}{
		{"a score without its declassifier", "claims", edit{"team.yaml", "      from: fraud\n      to: statistics\n", "      from: fraud\n      to: service-desk\n"}, `"statistics" accepts internal`},
		{"free text lowered", "claims", edit{"team.yaml", "paths: [/outcome, /payment]", "paths: [/outcome, /payment, /reasons/**]"}, "/reasons/** is not bounded"},
		{"a summary lowered", "support-ticket", edit{"team.yaml", "/severity, /refund]\n      lowerTo", "/severity, /refund, /summary]\n      lowerTo"}, "/summary is not bounded"},
		{"a category without an enum", "support-ticket", edit{"schemas/triage.json", `{"enum": ["payment", "delivery", "damage", "question"]}`, `{"type": "string"}`}, "/category is not bounded"},
		{"a reply that reads the ticket", "support-ticket", edit{"team.yaml", "    assignee: reply\n", "    assignee: reply\n    uses: [ticket]\n"}, `"reply" accepts internal`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, stderr, status := runteam(t, "", "check", edited(t, tt.example, tt.edit))
			require.Equal(t, 2, status, stderr)
			require.Contains(t, stderr, tt.want)
		})
	}
}

// assertions returns the assertions of an example's spec, one per line.
func assertions(t *testing.T, example string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(example, "team.yaml"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^    - (\S.* never .+?)(?: +#.*)?$`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	require.NotEmpty(t, all)
	return all
}

func TestAssertionsHold(t *testing.T) {
	t.Parallel()
	for _, example := range []string{"claims", "support-ticket"} {
		stdout, stderr, status := runteam(t, "", "plan", example)
		require.Zero(t, status, stderr)
		for _, assertion := range assertions(t, example) {
			require.Contains(t, stdout, "\nholds   "+assertion+" (")
		}
	}
}

// TestEachAssertionCanBreak finds for each assertion an edit of its example that breaks it.
func TestEachAssertionCanBreak(t *testing.T) {
	t.Parallel()
	reads := []edit{ // or its clearance keeps it first
		{"team.yaml", "accepts: internal\n", "accepts: confidential\n"},
		{"team.yaml", "    assignee: reply\n", "    assignee: reply\n    uses: [ticket]\n"},
	}
	edits := map[string]map[string][]edit{
		"claims": {
			"input claim never derives into service-desk":       {{"team.yaml", "    assignee: service-desk\n    dependsOn: [Read the terms]", "    assignee: service-desk\n    dependsOn: [Read the terms, Line for the statistics]"}},
			"task Extract the facts/holder never reaches fraud": {{"team.yaml", "to: fraud, allow: [/checks/**]", "to: fraud, block: [claimed]"}},
			"checks never reaches letters":                      {{"team.yaml", "block: [checks], ", ""}},
			"internal_notes never reaches letters":              {{"team.yaml", "to: letters, block: [internal_notes]", "to: letters, block: [payment]"}},
			"task Score the fraud risk never reaches letters":   {{"team.yaml", "      - Check the estimate\n      - Decide the claim\n", "      - Check the estimate\n      - Decide the claim\n      - Score the fraud risk\n"}},
			"signs never reaches statistics":                    {{"team.yaml", "paths: [/fraud_score]", "paths: [/fraud_score, /signs/**]\n      unsafeText: true"}},
		},
		"support-ticket": {
			"input ticket never reaches reply":           reads,
			"internal_notes never reaches reply":         reads,
			"internal_notes never reaches refunds":       {{"team.yaml", "need: [/order/number,", "need: [/internal_notes/*, /order/number,"}},
			"input ticket/customer never reaches triage": {{"team.yaml", "block: [customer]", "block: [received]"}},
			"summary never reaches reply":                {{"team.yaml", "/refund]\n      lowerTo: internal\n", "/refund, /summary]\n      unsafeText: true\n      lowerTo: internal\n"}},
		},
	}
	for example, edits := range edits {
		require.Len(t, edits, len(assertions(t, example)))
		for assertion, edits := range edits {
			t.Run(example+", "+assertion, func(t *testing.T) {
				t.Parallel()
				stdout, stderr, status := runteam(t, "", "plan", edited(t, example, edits...))
				require.Equal(t, 1, status, stderr)
				require.Contains(t, stdout, "\nBROKEN  "+assertion+" (")
			})
		}
	}
}
