package openai_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// canary is a passage of the prompt that no endpoint may repeat to the caller.
const canary = "the canary-of-the-prompt sings"

// encodings are the forms in which an endpoint may repeat a text.
var encodings = map[string]func(string) string{
	"raw":            func(s string) string { return s },
	"upper case":     strings.ToUpper,
	"percent":        url.QueryEscape,
	"percent, all":   func(s string) string { return "%" + strings.Join(pairs(hex.EncodeToString([]byte(s))), "%") },
	"percent, twice": func(s string) string { return url.QueryEscape(url.PathEscape(s) + "/") },
	"base64":         func(s string) string { return base64.StdEncoding.EncodeToString([]byte("x" + s)) },
	"base64 in a URL": func(s string) string {
		return url.QueryEscape(base64.URLEncoding.EncodeToString([]byte("Bearer " + s)))
	},
	"hex":         func(s string) string { return hex.EncodeToString([]byte(s)) },
	"JSON":        func(s string) string { return `\u00` + strings.Join(pairs(hex.EncodeToString([]byte(s))), `\u00`) },
	"JSON string": func(s string) string { text, _ := json.Marshal(map[string]string{"a": s}); return string(text) },
	"HTML":        func(s string) string { return html.EscapeString("<"+s+">") + "&#x73;" },
	"split":       func(s string) string { return strings.Join(strings.Split(s, ""), " ") },
	"split by lines": func(s string) string {
		return s[:5] + "\n" + s[5:10] + "\r\n" + s[10:]
	},
}

func pairs(s string) (out []string) {
	for i := 0; i < len(s); i += 2 {
		out = append(out, s[i:i+2])
	}
	return out
}

// leak returns a piece of the key or the prompt that a text repeats, in whatever form.
func leak(text string) string {
	forms := []string{text}
	for _, f := range forms[:1] {
		if u, err := url.QueryUnescape(f); err == nil {
			forms = append(forms, u)
		}
	}
	for _, secret := range []string{fakeKey[3:], canary} {
		for _, of := range []string{secret, squeezed(secret)} {
			for i := range len(of) - 12 {
				piece := of[i : i+12]
				for _, form := range forms {
					for _, in := range []string{strings.ToLower(form), squeezed(form)} {
						if strings.Contains(in, piece) {
							return piece
						}
					}
				}
				for skip := range 3 { // the first group of a run, whatever came before
					packed := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", skip) + piece))
					if strings.Contains(text, packed[4:12]) {
						return piece
					}
				}
				if strings.Contains(strings.ToLower(text), hex.EncodeToString([]byte(piece))) {
					return piece
				}
			}
		}
	}
	return ""
}

func squeezed(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789", r) {
			return r
		}
		return -1
	}, strings.ToLower(s))
}

// TestSanitizedTextsHaveNoEcho has an endpoint and its proxies write the key and the prompt
// into every text that reaches a caller.
func TestSanitizedTextsHaveNoEcho(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	header := func(name string) func(string) http.HandlerFunc {
		return func(s string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set(name, strings.NewReplacer("\n", "%0A", "\r", "%0D").Replace(s))
				sayJSON(429, `{"error":{"message":"slow down"}}`)(w, r)
			}
		}
	}
	quoted := func(s string) string { text, _ := json.Marshal(s); return string(text) }
	places := map[string]func(string) http.HandlerFunc{
		"redirect": func(s string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "https://elsewhere.example/login/"+s)
				w.WriteHeader(http.StatusTemporaryRedirect)
			}
		},
		"redirect that is no URL": func(s string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "://%zz"+s)
				w.WriteHeader(http.StatusTemporaryRedirect)
			}
		},
		"redirect to a host": func(s string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://"+s+".example/")
				w.WriteHeader(http.StatusTemporaryRedirect)
			}
		},
		"redirect of no kind": func(s string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "https://elsewhere.example/?"+s)
				w.WriteHeader(399)
			}
		},
		"redirect of no kind, in its path": func(s string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "https://elsewhere.example/login/"+s)
				w.WriteHeader(399)
			}
		},
		"list of models": func(s string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					sayJSON(200, `{"data":[{"id":`+quoted(s)+`}]}`)(w, r)
					return
				}
				sayJSON(404, ``)(w, r)
			}
		},
		"finish reason": func(s string) http.HandlerFunc {
			return sayJSON(200, `{"choices":[{"message":{"content":""},"finish_reason":`+quoted(s)+`}]}`)
		},
		"finish reason of an answer": func(s string) http.HandlerFunc {
			return sayJSON(200, `{"id":`+quoted(s)+`,"choices":[{"message":{"content":"a"},"finish_reason":`+quoted(s)+`}]}`)
		},
		"refusal": func(s string) http.HandlerFunc {
			return sayJSON(200, `{"choices":[{"message":{"refusal":`+quoted(s)+`},"finish_reason":"stop"}]}`)
		},
		"model of an answer": func(s string) http.HandlerFunc {
			return sayJSON(200, `{"model":`+quoted(s)+`,"choices":[{"message":{"content":"a"}}]}`)
		},
		"tool call": func(s string) http.HandlerFunc {
			return sayJSON(200, `{"choices":[{"message":{"tool_calls":[{"id":`+quoted(s)+`,"function":{"name":`+quoted(s)+`}}]}}]}`)
		},
		"error": func(s string) http.HandlerFunc {
			return sayJSON(400, `{"error":{"message":`+quoted(s)+`,"code":`+quoted(s)+`}}`)
		},
		"list of errors":             func(s string) http.HandlerFunc { return sayJSON(400, `[{"error":{"message":`+quoted(s)+`}}]`) },
		"list of errors under 200":   func(s string) http.HandlerFunc { return sayJSON(200, `[{"error":{"message":`+quoted(s)+`}}]`) },
		"list of errors in a stream": func(s string) http.HandlerFunc { return events(`data: [{"error":` + quoted(s) + `}]`) },
		"message as an object": func(s string) http.HandlerFunc {
			return sayJSON(400, `{"message":{`+quoted(s)+`:[`+quoted(s)+`,{"detail":`+quoted(s)+`}]}}`)
		},
		"message cut in two": func(s string) http.HandlerFunc {
			return sayJSON(400, `{"message":[`+quoted(s[:len(s)/2])+`,`+quoted(s[len(s)/2:])+`]}`)
		},
		"message cut at its limit": func(s string) http.HandlerFunc {
			return sayJSON(400, `{"message":[`+quoted(strings.Repeat("x", 590))+`,`+quoted(s)+`]}`)
		},
		"detail": func(s string) http.HandlerFunc {
			return sayJSON(422, `{"detail":[{"type":`+quoted(s)+`,"loc":["body",`+quoted(s)+`],"msg":`+quoted(s)+`,"input":`+quoted(s)+`}]}`)
		},
		"errors": func(s string) http.HandlerFunc { return sayJSON(400, `{"errors":[{"message":`+quoted(s)+`}]}`) },
		"retry info": func(s string) http.HandlerFunc {
			return sayJSON(429, `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":`+quoted(s)+`}],"message":"slow down"}}`)
		},
		"error that breaks off":      func(s string) http.HandlerFunc { return sayJSON(400, `{"message":[`+quoted(s)+`,"`) },
		"X-Ratelimit-Reset-Requests": header("X-Ratelimit-Reset-Requests"),
		"content of another type": func(s string) http.HandlerFunc {
			return sayJSON(200, `{"model":{"a":`+quoted(s)+`},"choices":[{"message":{"content":"a"},"finish_reason":[`+quoted(s)+`]}]}`)
		},
		"tool call of other types": func(s string) http.HandlerFunc {
			return sayJSON(200, `{"choices":[{"message":{"tool_calls":[{"id":{"a":`+quoted(s)+`},"function":{"name":[`+quoted(s)+`]}}]}}]}`)
		},
		"error as text":     func(s string) http.HandlerFunc { return sayJSON(500, s) },
		"error under 200":   func(s string) http.HandlerFunc { return sayJSON(200, `{"error":`+quoted(s)+`}`) },
		"not JSON":          func(s string) http.HandlerFunc { return sayJSON(200, `{"`+s) },
		"usage":             func(s string) http.HandlerFunc { return sayJSON(200, `{"usage":`+quoted(s)+`}`) },
		"error in a stream": func(s string) http.HandlerFunc { return events("event: error", "data: "+quoted(s)) },
		"Retry-After":       header("Retry-After"),
		"X-Request-Id":      header("X-Request-Id"),
		"Content-Type":      header("Content-Type"),
		"WWW-Authenticate":  header("Www-Authenticate"),
		"status": func(s string) http.HandlerFunc {
			return raw("HTTP/1.1 500 " + oneLine(s) + "\r\nContent-Length: 0\r\n\r\n")
		},
		"status that is none":   func(s string) http.HandlerFunc { return raw("HTTP/1.1 " + oneLine(s) + "\r\n\r\n") },
		"protocol that is none": func(s string) http.HandlerFunc { return raw(oneLine(s) + "\r\n\r\n") },
		"header that is none":   func(s string) http.HandlerFunc { return raw("HTTP/1.1 200 OK\r\n" + oneLine(s) + "\r\n\r\n") },
		"length that is none": func(s string) http.HandlerFunc {
			return raw("HTTP/1.1 200 OK\r\nContent-Length: " + oneLine(s) + "\r\n\r\n")
		},
		"encoding that is none": func(s string) http.HandlerFunc {
			return raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + oneLine(s) + "\r\n\r\n")
		},
	}
	for place, h := range places {
		for form, encode := range encodings {
			t.Run(place+"/"+form, func(t *testing.T) {
				t.Parallel()
				base := serve(t, h(encode(fakeKey)+" and "+encode(canary)))
				m := modelOf(t, openai.Config{Model: "m", BaseURL: base, APIKey: openai.NewKey(fakeKey)})
				res, err := call(t, m, false)
				requireSilent(t, res, err)
				if form == "raw" {
					res, err = call(t, m, true)
					requireSilent(t, res, err)
				}
			})
		}
	}
}

func oneLine(s string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) }

// raw writes bytes in the place of a reply.
func raw(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, s)
			_ = conn.Close()
		}
	}
}

// requireSilent checks that neither a response nor an error repeats the key or the prompt.
func requireSilent(t *testing.T, res llm.Response, err error) {
	t.Helper()
	texts := []string{res.FinishReason, res.Refusal, res.Model}
	for _, c := range res.ToolCalls {
		texts = append(texts, c.ID, c.Name)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		texts = append(texts, e.Error(), fmt.Sprintf("%+v", e), fmt.Sprintf("%#v", e))
		if of, ok := e.(*llm.Error); ok {
			texts = append(texts, of.Message)
			texts = append(texts, offered(of)...)
			require.LessOrEqual(t, len(of.Message), 700)
		}
	}
	for _, text := range texts {
		require.Empty(t, leak(text), text)
		require.NotContains(t, text, "\n")
		require.NotContains(t, text, "\x1b")
	}
}

// TestConnectionErrorsHaveNoEcho has proxies, name servers and certificates repeat the key
// and the prompt.
func TestConnectionErrorsHaveNoEcho(t *testing.T) {
	t.Parallel()
	said := fakeKey + " and " + canary + "\x1b[31m\n"
	for name, err := range map[string]error{
		"proxy":       errors.New("proxyconnect tcp: " + said),
		"name server": &net.DNSError{Name: said, Err: said, Server: said, IsNotFound: true},
		"certificate": &tls.CertificateVerificationError{Err: errors.New("x509: certificate is valid for " + said)},
		"GOAWAY":      fmt.Errorf("http2: server sent GOAWAY: %w", &net.OpError{Op: "read", Err: errors.New(said)}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, stream bool) {
				m := modelOf(t, openai.Config{Model: "m", BaseURL: "http://h/v1", APIKey: openai.NewKey(fakeKey), HTTPClient: &http.Client{
					Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, err }),
				}})
				res, err := call(t, m, stream)
				require.Error(t, err)
				requireSilent(t, res, err)
			})
		})
	}
	t.Run("broken body", func(t *testing.T) {
		t.Parallel()
		both(t, func(t *testing.T, stream bool) {
			m := modelOf(t, openai.Config{Model: "m", BaseURL: "http://h/v1", APIKey: openai.NewKey(fakeKey), HTTPClient: &http.Client{
				Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Body: io.NopCloser(brokenBody{errors.New(said)}), Request: r}, nil
				}),
			}})
			res, err := call(t, m, stream)
			require.Error(t, err)
			requireSilent(t, res, err)
		})
	})
}

type brokenBody struct{ err error }

func (b brokenBody) Read([]byte) (int, error) { return 0, b.err }

// TestHeaderValuesAreMasked checks that values of headers are hidden like the key.
func TestHeaderValuesAreMasked(t *testing.T) {
	t.Parallel()
	pair := "robot:" + fakeKey
	m := modelOf(t, openai.Config{
		Model: "m", BaseURL: serve(t, sayJSON(400, `{"error":"wrong pair `+pair+`"}`)),
		Headers: map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))},
	})
	res, err := call(t, m, false)
	require.ErrorContains(t, err, "wrong pair [key]")
	requireSilent(t, res, err)
}

// TestSanitizingKeepsOtherWords checks that ordinary texts are left alone.
func TestSanitizingKeepsOtherWords(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"maximum context length is 8192 tokens; you sent 9001",
		"model 'qwen3:8b' not found, try pulling it first",
		"Rate limit reached in organization org-abc123 on requests per min (RPM): limit 3 / min",
		"request id req_011CSHoEeqs5C35K2UUqR7Fy",
	} {
		m := modelOf(t, openai.Config{Model: "m", BaseURL: serve(t, sayJSON(400, `{"error":"`+text+`"}`)), APIKey: openai.NewKey(fakeKey)})
		_, err := call(t, m, false)
		require.ErrorContains(t, err, text)
	}
}

// TestKeyIsMaskedInAnyEncoding tries random keys, encodings and surroundings.
func TestKeyIsMaskedInAnyEncoding(t *testing.T) {
	t.Parallel()
	names := []string{"raw", "percent", "percent, all", "base64", "hex", "JSON", "split"}
	rapid.Check(t, func(rt *rapid.T) {
		before := rapid.StringMatching(`[a-zA-Z0-9 %\\+/=]{0,12}`).Draw(rt, "before")
		after := rapid.StringMatching(`[a-zA-Z0-9 %\\+/=]{0,12}`).Draw(rt, "after")
		form := rapid.SampledFrom(names).Draw(rt, "form")
		body, err := json.Marshal(map[string]string{"error": before + " " + encodings[form](fakeKey) + " " + after})
		require.NoError(rt, err)
		m, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", APIKey: openai.NewKey(fakeKey), HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 400, Body: io.NopCloser(strings.NewReader(string(body))), Request: r}, nil
		})}})
		require.NoError(rt, err)
		_, err = m.Call(t.Context(), hello, nil)
		require.Error(rt, err)
		require.Empty(rt, leak(err.Error()), err.Error())
	})
}
