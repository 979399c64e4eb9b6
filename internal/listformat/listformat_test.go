package listformat_test

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/listformat"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, format, text, want string }{
		{"an array", listformat.JSON, ` [1, {"a": "b"}] `, `[1,{"a":"b"}]`},
		{"without a format", "", "```json\n[1]\n```", `[1]`},
		{"an object", listformat.JSON, `{"leads":[]}`, `{"leads":[]}`},
		{"lines", listformat.NDJSON, "{\"a\":1}\r\n\n\"x\"\nnull", `[{"a":1},"x",null]`},
		{"no lines", listformat.NDJSON, "", `[]`},
		{"a table", listformat.CSV, "\ufeffname,note\r\nAnn,\"two\nlines, \"\"quoted\"\"\"\n\nBo,\n", `[{"name":"Ann","note":"two\nlines, \"quoted\""},{"name":"Bo","note":""}]`},
		{"a table without rows", listformat.CSV, "name\n", `[]`},
	} {
		v, err := listformat.Parse(tt.format, tt.text)
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.want, v.Canonical(), tt.name)
	}
}

// Errors say where, and nothing of the text.
func TestParseOfWhatIsNoList(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ format, text, want string }{
		{listformat.JSON, "[SECRET", "invalid list: not one strict JSON value"},
		{listformat.JSON, "[1]\xff", "line 1 is not UTF-8"},
		{listformat.NDJSON, "1\n\n{\"SECRET\":}\n", "line 3: not one strict JSON value"},
		{listformat.NDJSON, "1\n[1] [2]", "line 2: not one strict JSON value"},
		{listformat.CSV, "", "it has no header"},
		{listformat.CSV, "a,b\n1,2\n\"x\ny\",SECRET,4\n", "line 3: the number of fields is 3, and the header has 2"},
		{listformat.CSV, "a,b\n1\n", "line 2: the number of fields is 1, and the header has 2"},
		{listformat.CSV, "a,,b\n", "column 2 of the header has no name"},
		{listformat.CSV, "SECRET,b,SECRET\n", "columns 1 and 3 of the header have the same name"},
		{listformat.CSV, "a\nSEC\"RET\n", "line 2, column 4"},
		{listformat.CSV, "a\n\"SECRET\n", "line 2, column 9"},
		{listformat.CSV, "a\nb\n\xff\n", "line 3 is not UTF-8"},
		{listformat.CSV, strings.Repeat("x", 1<<20) + "\n1\n2\n3\n4\n5\n", "bytes in its canonical form"},
	} {
		_, err := listformat.Parse(tt.format, tt.text)
		require.ErrorIs(t, err, listformat.ErrInvalid, tt.want)
		require.ErrorContains(t, err, tt.want)
		require.NotContains(t, err.Error(), "SECRET")
	}
}

func TestFormatOfAFile(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"a.JSON": listformat.JSON, "x/leads.jsonl": listformat.NDJSON, "b.ndjson": listformat.NDJSON, `c:\d\e.Csv`: listformat.CSV, "csv": "", "-": "", "a.csv/b": ""} {
		require.Equal(t, want, listformat.Of(file), file)
	}
}

// What a table is written from is read again.
func TestTablesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringMatching(`[a-z ,"\n]{0,6}`)
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z,"]{1,4}`), 1, 4, rapid.ID[string]).Draw(t, "names")
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, len(names), len(names)), 0, 4).Draw(t, "rows")
		var text strings.Builder
		w := csv.NewWriter(&text)
		want := []any{}
		require.NoError(t, w.Write(names))
		for _, row := range rows {
			if len(row) == 1 && row[0] == "" {
				continue // an empty line is no row
			}
			require.NoError(t, w.Write(row))
			item := map[string]any{}
			for k, name := range names {
				item[name] = row[k]
			}
			want = append(want, item)
		}
		w.Flush()
		got, err := listformat.Parse(listformat.CSV, text.String())
		require.NoError(t, err)
		value, err := jsonvalue.Encode(want)
		require.NoError(t, err)
		require.Equal(t, value.Canonical(), got.Canonical())
	})
}
