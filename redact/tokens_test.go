package redact_test

import (
	"crypto/sha256"
	"flag"
	"maps"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

var update = flag.Bool("update", false, "rewrite the table of formats in docs/reference/redaction.md")

// The document has the table of which the code is made.
func TestFormatTable(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../docs/reference/redaction.md", "<!-- made of redact/tokens.tsv -->\n", "<!-- end of the table -->\n"
	code := func(column string) string {
		for word := range strings.FieldsSeq(column) {
			column = strings.Replace(column, word, "`"+strings.ReplaceAll(word, "|", `\|`)+"`", 1)
		}
		return column
	}
	var table strings.Builder
	for n, row := range strings.Split(strings.TrimSuffix(redact.FormatTable, "\n"), "\n") {
		columns := strings.Split(row, "\t")
		require.Len(t, columns, 6, "%q", row)
		if n > 0 {
			columns[2] = code(columns[2])
		}
		table.WriteString("| " + strings.Join(columns, " | ") + " |\n")
		if n == 0 {
			table.WriteString(strings.Repeat("| --- ", 6) + "|\n")
		}
	}
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(page), begin)
	got, behind, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s has no %q and %q", file, begin, end)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+table.String()+end+behind), 0o666))
		return
	}
	require.Equal(t, table.String(), got, `%s differs from redact/tokens.tsv: run "go test ./redact -run TestFormatTable -update"`, file)
}

// A token that is drawn by a row of the table is found. A short one may look like a word by chance.
func TestEveryFormatIsFound(t *testing.T) {
	t.Parallel()
	const n = 40
	d, found := newDraw(6), map[string]int{}
	for range n {
		redact.DrawnTokens(d.IntN, func(prefix, token string, kind redact.Kind) {
			spans := redact.Secrets().Spans("Bitte "+token+" notieren.", nil)
			if len(spans) == 1 && spans[0] == (redact.Span{Start: 6, End: 6 + len(token), Kind: kind}) {
				found[prefix]++
			} else {
				found[prefix] += 0
			}
		})
	}
	for prefix, times := range found {
		assert.GreaterOrEqual(t, times, n*4/5, prefix)
	}
}

// uuid returns a drawn UUID.
func (d draw) uuid() string {
	return d.from(hexes, 8) + "-" + d.from(hexes, 4) + "-4" + d.from(hexes, 3) + "-a" + d.from(hexes, 3) + "-" + d.from(hexes, 12)
}

// wif returns a private key of Bitcoin in the Wallet Import Format.
func (d draw) wif(compressed bool) string {
	raw := []byte{0x80}
	for range 32 {
		raw = append(raw, byte(d.Uint32()))
	}
	if compressed {
		raw = append(raw, 1)
	}
	once := sha256.Sum256(raw)
	twice := sha256.Sum256(once[:])
	n, zero, base, digit := new(big.Int).SetBytes(append(raw, twice[:4]...)), big.NewInt(0), big.NewInt(58), new(big.Int)
	var text []byte
	for n.Cmp(zero) > 0 {
		n.DivMod(n, base, digit)
		text = append(text, "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"[digit.Int64()])
	}
	slices.Reverse(text)
	return string(text)
}

// Tokens of each form are found in prose without a name next to them, as a whole.
//
// Requirement: G23.
func TestTokensInProse(t *testing.T) {
	t.Parallel()
	d := newDraw(4)
	const bech32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	tokens := map[string]func() string{
		"Google AQ.": func() string { return "AQ" + ".Ab8R" + d.from(url64, 46) },
		"Azure DevOps": func() string {
			return d.from(alnums, 52) + "JQ" + "QJ99" + d.from(uppers, 4) + "CAAAAAAAAAAA" + "AAASAZDO" + d.from(alnums, 4)
		},
		"Azure Container Registry": func() string { return d.from(base64, 42) + "+A" + "CR" + d.from(base64, 6) },
		"Airtable":                 func() string { return "pa" + "t" + d.from(alnums, 14) + "." + d.from(hexes, 64) },
		"HubSpot":                  func() string { return "pat" + "-eu1-" + d.uuid() },
		"PostHog":                  func() string { return "ph" + "x_" + d.from(alnums, 43+d.IntN(5)) },
		"Square":                   func() string { return "EA" + "AA" + d.from(url64, 60) },
		"Braintree": func() string {
			return "access_token$" + "production$" + d.from(digits+lowers, 16) + "$" + d.from(hexes, 32)
		},
		"Mapbox":         func() string { return "s" + "k.eyJ1Ijoi" + d.from(alnums, 60) + "." + d.from(url64, 22) },
		"Dropbox":        func() string { return "s" + "l.u." + d.from(url64, 180) },
		"Dropbox, older": func() string { return "s" + "l." + d.from(url64, 136) },
		"Cerebras":       func() string { return "cs" + "k-" + d.from(digits+lowers, 48) },
		"Together":       func() string { return "tgp" + "_v1_" + d.from(url64, 43) },
		"E2B":            func() string { return "e2" + "b_" + d.from(hexes, 40) },
		"Firecrawl":      func() string { return "f" + "c-" + d.from(hexes, 32) },
		"Vercel Blob":    func() string { return "vercel_" + "blob_rw_" + d.from(alnums, 16) + "_" + d.from(alnums, 30) },
		"Neon":           func() string { return "na" + "pi_" + d.from(digits+lowers, 64) },
		"Render":         func() string { return "rn" + "d_" + d.from(alnums, 28) },
		"Apify":          func() string { return "apify" + "_api_" + d.from(alnums, 36) },
		"Jina":           func() string { return "ji" + "na_" + d.from(alnums, 60) },
		"Snyk": func() string {
			return "snyk" + "_uat." + d.from(hexes, 8) + "." + d.from(url64, 30) + "." + d.from(url64, 40)
		},
		"1Password secret key": func() string {
			return "A" + "3-" + strings.Join([]string{d.from(uppers+digits, 6), d.from(uppers+digits, 6), d.from(uppers+digits, 5), d.from(uppers+digits, 5), d.from(uppers+digits, 5), d.from(uppers+digits, 5)}, "-")
		},
		"1Password service":   func() string { return "ops" + "_eyJ" + d.from(base64, 300) },
		"Flutterwave":         func() string { return "FLW" + "SECK_TEST-" + d.from(hexes, 32) + "-X" },
		"Flutterwave, live":   func() string { return "FLW" + "SECK-" + d.from(hexes, 32) + "-X" },
		"Sentry":              func() string { return "sntr" + "ys_eyJpYXQiO" + d.from(alnums, 100) + "==_" + d.from(base64, 43) },
		"Nostr":               func() string { return "ns" + "ec1" + d.from(bech32, 58) },
		"Bitcoin":             func() string { return d.wif(false) },
		"Bitcoin, compressed": func() string { return d.wif(true) },
		"Harness": func() string {
			return "pa" + "t." + d.from(url64, 22) + "." + d.from(alnums, 24) + "." + d.from(alnums, 20)
		},
		"MaxMind": func() string { return d.from(alnums, 6) + "_" + d.from(alnums, 29) + "_m" + "mk" },
		"Teams webhook": func() string {
			return ".webhook" + ".office.com/webhookb2/" + d.uuid() + "@" + d.uuid() + "/IncomingWebhook/" + d.from(hexes, 32) + "/" + d.uuid()
		},
	}
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		const n = 50
		found, token := 0, tokens[name]
		for range n {
			token := token()
			kind := redact.Token
			if name == "Nostr" || strings.HasPrefix(name, "Bitcoin") {
				kind = redact.Key
			}
			spans := redact.Secrets().Spans("Bitte "+token+" notieren.", nil)
			if len(spans) == 1 && spans[0] == (redact.Span{Start: 6, End: 6 + len(token), Kind: kind}) {
				found++
			}
		}
		t.Logf("%-25s %d of %d", name, found, n)
		assert.GreaterOrEqual(t, found, n*94/100, name)
	}
}

// A key of Bitcoin is one by its checksum: another text of the same form stays.
func TestChecksumDecides(t *testing.T) {
	t.Parallel()
	d := newDraw(5)
	for range 50 {
		key := d.wif(true)
		require.Len(t, redact.Secrets().Spans("key "+key, nil), 1)
		wrong := []byte(key)
		wrong[20+d.IntN(20)] ^= 1
		require.Empty(t, redact.Secrets().Spans("key "+string(wrong), nil))
	}
}
