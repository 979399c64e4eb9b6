package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// A key says what its value is, where the value alone would not.
//
// Requirement: G23.
func TestKeyIsEvidence(t *testing.T) {
	t.Parallel()
	tests := map[redact.Kind][]string{
		redact.Phone: {
			`{"phone":⟨"555-0136"⟩}`, `{"Phone Number":⟨"555 0136"⟩}`, `{"phone_number":⟨"5550136"⟩}`, `{"homePhone":⟨"5550136"⟩}`, `{"contact-tel":⟨"5550136"⟩}`, `{"mobile":⟨447700900123⟩}`, `{"phone":⟨5550136⟩}`, `{"telefon":⟨"1234 567 8"⟩}`,
			`{"phones":[⟨"555-0136"⟩,⟨5550137⟩]}`, `{"phone":{"number":⟨"555-0136"⟩,"ext":12}}`, `{"phones":[{"number":⟨"555-0136"⟩,"verified":20240517}]}`, `{"system":"phone","value":⟨"555-0136"⟩}`, `{"name":"phone","value":⟨"5550136"⟩}`,
			`{"phone1":⟨"20123456"⟩}`, `{"customerPhoneNumber":⟨"+1 555 0136"⟩}`, `{"fax":⟨"(0) 555/0136"⟩}`, `{"телефон":⟨"5550136"⟩}`, `{"phone":" ⟨5550136⟩ (home), ⟨5550137⟩"}`, `{"phone":⟨"５５５-０１３６"⟩}`, `{"phone":⟨"NTU1LTAxMzYgKGhvbWUp"⟩}`, `{"phone":⟨5.550136e6⟩}`,
			`{"phone":"2024-05-17"}`, `{"phone":"123456"}`, `{"phone":123456}`, `{"phoneType":1234567}`, `{"phone_verified_at":1715938000}`, `{"phoneCount":1234567}`, `{"numPhones":1234567}`, `{"isPhone":1234567}`, `{"desktop":1534000,"mobile":2251000}`, `{"microphone":1234567}`,
			`{"phone":{"created":1234567}}`, `{"phone":"1234567890123456"}`, `{"number":"5550136"}`, `{"phone":null,"other":"5550136"}`, `{"cep":"01310100"}`, `{"phone":["a",{"order":5550136}]}`, `{"phone":"[REDACTED:phone]"}`,
		},
		redact.SSN: {
			`{"ssn":⟨123456789⟩}`, `{"ssn":⟨"123456789"⟩}`, `{"socialSecurityNumber":⟨123456789⟩}`, `{"social_security":⟨"123 456 789"⟩}`, `{"SSN":⟨78051120⟩}`, `{"customer":{"ssn":{"value":⟨"123456789"⟩}}}`, `{"ssns":[⟨123456789⟩]}`, `{"user-ssn":⟨"12345-6789"⟩}`,
			`{"ssn":900123456}`, `{"ssn":"900-12-3456"}`, `{"ssn":666123456}`, `{"ssn":"78051120"}`, `{"ssn":12345678901}`, `{"session":123456789}`, `{"ssn":123006789}`, `{"assn":123456789}`, `{"ssnLast4":6789}`,
		},
		redact.Card: {
			`{"card":⟨"500000000009"⟩}`, `{"cardNumber":⟨4000000000006⟩}`, `{"credit_card":⟨"9000-0000 0000.0001"⟩}`, `{"card":{"number":⟨9000000000000001⟩,"month":12}}`, `{"cards":[⟨9000000000000001⟩]}`,
			`{"card":4111111111111112}`, `{"card":"000000000000"}`, `{"other":9000000000000001}`, `{"cardType":"9000000000000001"}`,
		},
		redact.IBAN: {`{"iban":⟨"ZZ08ABCD12345678901"⟩}`, `{"account_number":⟨"de89 370400440532013000"⟩}`, `{"iban":"ZZ99ABCD12345678901"}`, `{"account":"checking"}`},
		redact.Email: {
			`{"email":⟨"jane@localhost"⟩}`, `{"e-mail":⟨"jane@mail"⟩}`, `{"userEmail":⟨"jane@intranet"⟩}`, `{"emails":[⟨"jane@host"⟩,⟨"a@b"⟩]}`, `{"email":"jane at host"}`, `{"email":"@jane"}`, `{"name":"jane@localhost"}`, `{"email":"a@b c@d"}`,
		},
		redact.IP:  {`{"ip":⟨"::"⟩}`, `{"ipAddress":⟨"fe::a"⟩}`, `{"listen":⟨"::"⟩}`, `{"client_ip":⟨"dead:beef::"⟩}`, `{"op":"::"}`, `{"x":"fe::a"}`, `{"ip":"1.2.3"}`},
		redact.MAC: {`{"mac":⟨"001A2B3C4D5E"⟩}`, `{"macAddress":⟨"001a2b3c4d5e"⟩}`, `{"hw":"001A2B3C4D5E"}`, `{"mac":"000000000000"}`, `{"mac":"d41d8cd98f00b204"}`},
	}
	for kind, values := range tests {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			for _, marked := range values {
				give, want := strings.NewReplacer("⟨", "", "⟩", "").Replace(marked), marked
				for {
					before, rest, ok := strings.Cut(want, "⟨")
					if !ok {
						break
					}
					_, behind, _ := strings.Cut(rest, "⟩")
					placeholder := kind.Placeholder()
					if strings.Count(before, `"`)%2 == 0 { // the whole of a string, or a number
						placeholder = `"` + placeholder + `"`
					}
					want = before + placeholder + behind
				}
				got, counts, err := finder(t, kind).Value(give)
				require.NoError(t, err, give)
				require.Equal(t, want, got)
				require.Equal(t, strings.Count(marked, "⟨"), counts[kind])
				requireSameShape(t, give, got)
				again, counts, err := finder(t, kind).Value(got)
				require.NoError(t, err)
				require.Equal(t, got, again)
				require.Nil(t, counts)
				got, _, err = redact.Secrets().Value(give)
				require.NoError(t, err)
				require.Equal(t, give, got, "the kind is not asked for")
			}
		})
	}
}

// Requirement: G23.
func TestKeyIsNoEvidenceForOtherKinds(t *testing.T) {
	t.Parallel()
	got, counts, err := redact.All().Value(`{"phone":"5550136","[x] 415-555-0132":5550137,"ssn":"5550136"}`)
	require.NoError(t, err)
	require.Equal(t, `{"phone":"[REDACTED:phone]","[x] [REDACTED:phone]":5550137,"ssn":"5550136"}`, got)
	require.Equal(t, 2, counts[redact.Phone])
}

// Requirement: G23.
func TestRevealedKindStaysUnderItsKey(t *testing.T) {
	t.Parallel()
	give := `{"phone":"555-0136","ssn":78051120}`
	got, redacted, revealed, err := redact.Default().JSON(t.Context(), give, only(redact.Phone, "phone"))
	require.NoError(t, err)
	require.Equal(t, `{"phone":"555-0136","ssn":"[REDACTED:ssn]"}`, got)
	require.Equal(t, redact.Counts{redact.SSN: 1}, redacted)
	require.Equal(t, redact.Counts{redact.Phone: 1}, revealed)
}

// What is at the very beginning and at the very end of a text is found as between words.
//
// Requirement: G23.
func TestFindsValuesAtTheEdgesOfText(t *testing.T) {
	t.Parallel()
	for kind, values := range map[redact.Kind][]string{
		redact.Card: {"4111111111111111", "4111 1111 1111 1111"}, redact.IBAN: {"DE89370400440532013000", "NO93 8601 1117 947"}, redact.Email: {"jane@example.co"}, redact.SSN: {"123-45-6789"},
		redact.Phone: {"+1 415 555 0132", "(415) 555-0132", "415-555-0132", "0171 1234567"}, redact.MAC: {"00:1a:2b:3c:4d:5e", "0012.3456.789a"},
		redact.IP:    {"10.0.0.1", "::1", "1::", "fe80::", "2001:db8::", "::/0", "10.0.0.0/8", "::ffff:1.2.3.4", "fe80::1%a"},
		redact.Token: {"gh" + "p_" + fake(alnums, 36), "AKIA" + "Q2W3E4R5T6Y7U8I9"}, redact.JWT: {"ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + fake(alnums, 43)}, redact.Password: {"password=x9kQ2z", "password='x9kQ2z'", "https://u:pw1@h", "<password>x9kQ2z!<", "-u a:x9kQ2z"},
	} {
		for _, value := range values {
			for _, text := range []string{value, " " + value, "x " + value, value + " x", value + "\n"} {
				if value[0] == '-' {
					text = "curl " + text
				}
				spans := redact.All().Spans(text, nil)
				require.Len(t, spans, 1, "%q", text)
				require.Equal(t, kind, spans[0].Kind, "%q", text)
			}
		}
	}
}

// Requirement: G23.
func TestWordsNextToNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"phone: 555 0136":              "phone: [REDACTED:phone]",
		"phone_number = 555-0136":      "phone_number = [REDACTED:phone]",
		"customerPhoneNumber: 5550136": "customerPhoneNumber: [REDACTED:phone]",
		"customerPhone: 5550136":       "customerPhone: [REDACTED:phone]",
		"userSSN: 123456789":           "userSSN: [REDACTED:ssn]",
		"MAC: 001A2B3C4D5E":            "MAC: [REDACTED:mac]",
		"mac_address=001a2b3c4d5e":     "mac_address=[REDACTED:mac]",
		`"macAddr": "001a2b3c4d5e"`:    `"macAddr": "[REDACTED:mac]"`,
		"HMAC 001A2B3C4D5E":            "HMAC 001A2B3C4D5E",
		"machine 001A2B3C4D5E":         "machine 001A2B3C4D5E",
		"MAC 001A2B3C4D5E6F":           "MAC 001A2B3C4D5E6F",
		"microphone: 5550136":          "microphone: 5550136",
		"phoneType: 5550136":           "phoneType: 5550136",
	} {
		got, _, err := redact.All().Text(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
