package people

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForms(t *testing.T) {
	t.Parallel()
	const object = `{"type":"object","properties":{"choice":{"enum":["send",2,true]},"ok":{"type":"boolean"},"n":{"type":"integer","minimum":1},"note":{"type":"string","description":"why"},"more":{"type":"array"}},"required":["ok","choice"]}`
	tests := []struct {
		name, schema string
		set          map[string]string
		text         string
		want, err    string
	}{
		{name: "a text", text: "fine\n", want: "fine\n"},
		{name: "an empty text", text: " \n", err: "the answer is empty"},
		{name: "a text that is no UTF-8", text: "a\xff", err: "the answer is not valid UTF-8"},
		{name: "a field that is no UTF-8", schema: object, set: map[string]string{"choice": "send", "ok": "y", "note": "\xff"}, err: "--set note: the text is not valid UTF-8"},
		{name: "a choice", schema: `{"enum":["send","stop"]}`, text: "stop", want: `"stop"`},
		{name: "a wrong choice", schema: `{"enum":["send","stop"]}`, text: "burn", err: `"burn" is not one of send, stop`},
		{name: "yes", schema: `{"type":"boolean"}`, text: "Yes", want: `true`},
		{name: "a number", schema: `{"type":"number"}`, text: "1.50", want: `1.5`},
		{name: "no number", schema: `{"type":"number"}`, text: "one", err: `"one" is not a number`},
		{name: "a text with a bound", schema: `{"type":"string","maxLength":3}`, text: "long", err: "the answer does not fit"},
		{name: "any JSON", schema: `true`, text: `[1]`, want: `[1]`},
		{name: "all fields", schema: object, set: map[string]string{"choice": "2", "ok": "no", "n": "3", "note": "a=b", "more": "[1]"}, want: `{"choice":2,"more":[1],"n":3,"note":"a=b","ok":false}`},
		{name: "an object as JSON", schema: object, text: `{"choice":"send","ok":true}`, want: `{"choice":"send","ok":true}`},
		{name: "an object with a name twice", schema: object, text: `{"ok":true,"ok":false}`, err: "the answer is not JSON: "},
		{name: "no object", schema: object, text: `yes`, err: "this question has fields: write --set ok=yes"},
		{name: "a number that does not fit", schema: object, set: map[string]string{"choice": "send", "ok": "y", "n": "0"}, err: "n"},
		{name: "a list that is none", schema: object, set: map[string]string{"choice": "send", "ok": "y", "more": "x"}, err: `more: "x" is not a JSON list`},
		{name: "a field that is missing", schema: object, set: map[string]string{"choice": "send"}, err: "ok is missing: write --set ok=yes"},
		{name: "the choice null", schema: `{"type":"object","properties":{"c":{"enum":[null,1]}},"required":["c"]}`, set: map[string]string{"c": "null"}, want: `{"c":null}`},
		{name: "fields of a text", set: map[string]string{"a": "b"}, err: "--set is for an answer with fields, and this one is text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := newForm(tt.schema)
			require.NoError(t, err)
			var got string
			if tt.set != nil {
				got, err = f.set(tt.set)
			} else {
				got, err = f.text(tt.text)
			}
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	f, err := newForm(object)
	require.NoError(t, err)
	require.Equal(t, []string{"--set", "ok=yes", "--set", "choice=send"}, f.arguments())
}

// Each field is checked by its own bounds, as soon as it is given.
func TestFieldsHaveBounds(t *testing.T) {
	t.Parallel()
	f, err := newForm(`{"type":"object","$defs":{"id":{"pattern":"^[a-z]+$"}},"properties":{"a":{"type":"integer","minimum":2},"b":{"type":"string","maxLength":3},"c":{"type":"string","pattern":"^[A-Z]{2}$"},"d":{"$ref":"#/$defs/id"},"e":{"type":"array","maxItems":1}},"required":["a","b","c","d","e"]}`)
	require.NoError(t, err)
	for k, tt := range []struct{ fits, not, err string }{
		{"2", "1", "a: found 1; expected minimum 2"},
		{"abc", "abcd", `b: found "abcd"; expected maxLength 3`},
		{"AB", "ABC", `c: found "ABC"; expected pattern`},
		{`"x"`, "", ""}, // by the schema of the whole answer
		{"[1]", "[1,2]", "e: found"},
	} {
		_, err := f.fields[k].fitting(tt.fits)
		require.NoError(t, err)
		if tt.not != "" {
			_, err = f.fields[k].fitting(tt.not)
			require.ErrorContains(t, err, tt.err)
		}
	}
	_, err = f.set(map[string]string{"a": "2", "b": "abc", "c": "AB", "d": `"1"`, "e": "[]"})
	require.ErrorContains(t, err, "the answer does not fit: /d")
}
