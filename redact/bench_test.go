package redact_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runteam/runteam/redact"
)

// sample returns n bytes or a little less of a text repeated, cut at a rune.
func sample(text string, n int) string {
	text = strings.Repeat(text, n/len(text)+1)[:n]
	return strings.ToValidUTF8(text, "")
}

const (
	english = "The insured noticed the leak on Sunday morning; by noon the ceiling of the hall had come down. A plumber (invoice " +
		"2024-0117, 412.50 EUR) replaced the joint. Photographs are attached as claim-7731.zip: please confirm receipt.\n\n"
	hebrew = "הצוות בדק את התביעה ביום ראשון, ומצא שהנזק נגרם בצינור ישן. הסכום המבוקש: 1,250 ש״ח. נא לאשר עד סוף החודש.\n"
	nihon  = "チームは日曜日に請求書を確認し、古い配管が原因であると判断しました。金額：１２５０円。月末までにご確認ください。\n"
	code   = "func (q *Queue) Next(now time.Time) (task.ID, bool) {\n\tfor i, t := range q.ready {\n\t\tif t.After(now) {\n\t\t\tcontinue\n\t\t}\n" +
		"\t\tq.ready = append(q.ready[:i], q.ready[i+1:]...)\n\t\treturn t.ID, true\n\t}\n\treturn task.ID{}, false\n}\n\n"
	russian = "Страхователь заметил протечку в воскресенье утром; к полудню обрушился потолок в прихожей. Сантехник (счёт 2024-0117) заменил соединение. Просим подтвердить получение.\n\n"
	accents = "L’assuré a remarqué la fuite dimanche – à midi, le plafond s’était effondré… Le plombier (facture nº 2024-0117, 412,50 €) a remplacé le raccord.\u00a0\n\n"
	plain   = "The insured noticed the leak on Sunday morning; by noon the ceiling of the hall had come down. A plumber replaced the joint.\n\n"
	columns = "12 4711 305 99821 1024 17 3301\n"
	logs    = "2024-05-17T09:12:44.123Z INFO queue: task=9f1c2d3e status=completed took=1.284s agent=\"intake\" tokens=1841 retries=0\n"
)

func dirty() string {
	return strings.Join(seeds(), "\n") + strings.Repeat(english, 8)
}

// mixed is a letter in which every line but a few is clean.
func mixed() string {
	return strings.Repeat(english, 4) + "Contact: anna.berg@claims.example, +1 202-555-0143, card 4111 1111 1111 1111.\n" + strings.Repeat(hebrew+russian, 2) +
		"Account DE89 3704 0044 0532 0130 00; password: Xk9#mP2q\n" + strings.Repeat(nihon+code, 2) + "see anna%40claims.example YW5uYUBjbGFpbXMuZXhhbXBsZQ==\n"
}

func BenchmarkText(b *testing.B) {
	texts := []struct{ name, text string }{
		{"plain", plain}, {"english", english}, {"french", accents}, {"russian", russian}, {"hebrew", hebrew}, {"japanese", nihon}, {"code", code}, {"logs", logs}, {"digits", digits}, {"columns", columns},
		{"mixed", mixed()}, {"hits", strings.ToValidUTF8(dirty(), "")},
	}
	for _, t := range texts {
		for _, size := range []struct {
			name string
			n    int
		}{{"4KiB", 4 << 10}, {"64KiB", 64 << 10}} {
			text := sample(t.text, size.n)
			b.Run("floor/"+t.name+"/"+size.name, func(b *testing.B) { // no redactor can do with less than a look at each byte
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
						b.Fatal("damaged")
					}
				}
			})
			for _, r := range benchmarked() {
				b.Run(r.name+"/"+t.name+"/"+size.name, func(b *testing.B) {
					b.SetBytes(int64(len(text)))
					b.ReportAllocs()
					for b.Loop() {
						if _, _, err := r.Text(text); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

type named struct {
	*redact.Redactor
	name string
}

func benchmarked() []named {
	return []named{{redact.Secrets(), "secrets"}, {redact.Default(), "default"}, {redact.All(), "all"}}
}

func BenchmarkJSON(b *testing.B) {
	clean := `{"items":[` + strings.Repeat(`{"id":"550e8400-e29b-41d4-a716-446655440000","note":"The joint \"was\" replaced.\nPaid.","price":412.5,"tags":["leak","hall"]},`, 20)
	texts := map[string]string{
		"clean": strings.TrimSuffix(clean, ",") + "]}", "hits": strings.TrimSuffix(clean, ",") + `],"password":"swordfish","url":"https://u:p@h"}`,
		"numbers": `[` + strings.Repeat(`1024,17,993,4,-5,0.125,`, 100) + `1]`, "dates": `[` + strings.Repeat(`"2024-05-17","leak 7",`, 100) + `1]`,
		"short": `[` + strings.Repeat(`"ab","leak","x1","joint",`, 100) + `1]`, "words": `[` + strings.Repeat(`"leak","insurance","plumber",`, 100) + `1]`,
	}
	for _, name := range []string{"clean", "hits", "numbers", "dates", "short", "words"} {
		text := texts[name]
		b.Run("floor/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !json.Valid([]byte(text)) {
					b.Fatal("damaged")
				}
			}
		})
		for _, r := range benchmarked() {
			b.Run(r.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := r.Value(text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkHostile reports the slowest that a text can make the pass, for each way of trying.
func BenchmarkHostile(b *testing.B) {
	for _, p := range hostile() {
		b.Run(p.name, func(b *testing.B) {
			text := p.head + strings.Repeat(p.repeat, (256<<10)/len(p.repeat)+1)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				redact.All().Spans(text, nil)
			}
		})
	}
}

// BenchmarkRepeated reports microseconds for each KiB of a short token that is repeated. The time
// for each KiB must not grow with the text.
//
// Before values that overlap were read once, 64 KiB took (µs of CPU time for each KiB, both in one
// process on an AMD EPYC): key= 28, otp: 163, token: 114, "4111 " 90. Since then: 9, 36, 26, 62; x:
// takes 7 in both. Each value that differs from the one before is still counted anew: otp:token:
// takes 100 (137 before). With decomposed letters ("a\u0301") most of the time is spent in norm. 4
// MiB allocated up to 354 MB ("1\x01", where each second byte is left out); now 48 MB.
func BenchmarkRepeated(b *testing.B) {
	for _, token := range []string{"x:", "key=", "otp:", "token:", "eyJ", "ab:", "is ", "4111 ", "4111\n", "1\x01", "%41", "a\u0301", "QUFB"} {
		for _, size := range []struct {
			name string
			n    int
		}{{"64KiB", 64 << 10}, {"4MiB", 4 << 20}} {
			b.Run(token+"/"+size.name, func(b *testing.B) {
				text := sample(token, size.n)
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := redact.All().Text(text); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(text)>>10), "µs/KiB")
			})
		}
	}
}

// BenchmarkStream compares a text that arrives in pieces of four bytes, as models send them, to its
// redaction as a whole.
func BenchmarkStream(b *testing.B) {
	texts := []struct{ name, text string }{
		{"plain", plain}, {"english", english}, {"code", code}, {"japanese", nihon}, {"mixed", mixed()},
		{"key", "-----BEGIN " + "PRIVATE KEY-----\n" + strings.Repeat(fake(base64, 64)+"\n", 255)},
	}
	const piece = 4
	for _, t := range texts {
		text := sample(t.text, 16<<10)
		b.Run("floor/"+t.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, _, err := redact.Default().Text(text); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("stream/"+t.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				s := redact.Default().Stream(nil)
				for i := 0; i < len(text); i += piece {
					s.Write(b.Context(), text[i:min(i+piece, len(text))])
				}
				if _, _, _, err := s.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(text)/piece), "ns/piece")
		})
	}
}
