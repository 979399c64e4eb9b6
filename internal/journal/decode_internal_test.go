package journal

import (
	"bytes"
	"crypto/rand"
	"runtime"
	"testing"

	"github.com/runteam/runteam/internal/runstate"
	"github.com/stretchr/testify/require"
)

// FuzzRows reads lines as a damaged row may have them: whatever they are, they
// are read or refused, and what is made of them can be asked for.
func FuzzRows(f *testing.F) {
	for _, line := range []string{
		`{"info":{"run":"r1","label":"secret","files":[{"path":"a","label":"secret","hidden":{"digest":"00"}}]}}`,
		`{"begin":{"run":"r1","time":"2026-03-14T12:00:00Z","inputs":[{"name":"claim","classification":"public","bytes":3,"key":"11"}]}}`,
		`{"begin":{"run":"r1","tasks":[{"title":"A"},{"title":"B","after":[0]},{"title":"C","after":[3]}]}}`,
		`{"asked":{"session":"r1/a/1","task":"a","agent":"x","attempt":1,"time":"2026-03-14T12:00:00Z","bytes":1}}`,
		`{"exchange":{"session":"r1/a/1","key":null,"result":{"id":"e","producer":"x","classification":"secret","trust":"untrusted","createdAt":"2026-03-14T12:00:00Z","json":{"a":[1]},"raw":"/w==","digest":"22"},"hidden":{"sealed":{"key":"k","nonce":"AA==","data":""}}}}`,
		`{"end":{"time":"2026-03-14T12:00:00Z","status":"ok","hidden":{}}}`,
		`{"turn":{"session":"r1/a/1","part":"/turn/1","provider":{"before":"x","sealed":{"key":"k","nonce":"AA==","data":""}}}}`, `{"exchange":{"provider":{}}}`,
		`{"sealed":{"session":"s","hidden":{}}}`, `{"event":{"type":"task_start","task":"a"}}`, `{`, `null`, `{"exchange":null}`,
	} {
		f.Add([]byte(line + "\n"))
	}
	s, err := newSealer(bytes.Repeat([]byte{1}, KeyBytes), rand.Reader)
	require.NoError(f, err)
	v := &vault{sealer: s, digests: newDigester(make([]byte, 32))}
	f.Fuzz(func(t *testing.T, lines []byte) {
		d := &decoder{vault: v, run: "r1", stored: new(Stored)}
		read, err := d.row(&batchRow{text: lines})
		for i := range read {
			d.add(&read[i])
		}
		for _, e := range d.stored.History.Log {
			x := e.Exchange
			if err != nil || x == nil || x.Result == nil {
				continue
			}
			made, bad := x.Result.Envelope()
			if bad == nil {
				require.Error(t, made.Genuine(), "nobody can make a digest without the key")
			}
		}
		if err == nil && d.stored.History.End != nil {
			runstate.Of(&d.stored.History)
		}
	})
}

// A row in which little text says that it is more than a row may have is damaged, and that is found out before any of it
// is unpacked.
//
// Requirement: G66.
func TestRowsAreUnpackedWithinTheirLimit(t *testing.T) {
	t.Parallel()
	block := []byte{0x02 | 1<<4, 0, 0x10, 'x'} // 128 KiB of one byte: its size from bit 3 on, its kind, and that more follow
	unsized := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58}, bytes.Repeat(block, 10_000)...)
	last := []byte{0x01, 0, 0}
	sized := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x3f}, last...) // 1 GiB, it says
	small := compressor().EncodeAll([]byte("{}\n"), nil)
	for name, text := range map[string][]byte{"blocks": append(unsized, last...), "header": sized, "many": bytes.Repeat(compressor().EncodeAll(append(bytes.Repeat([]byte("x"), 1<<20), '\n'), nil), 200)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b := bundle{kept: text, rest: small, parts: []byte{1, 1}}
		_, err := b.unpack()
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, errRow, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20), name)
	}
	require.LessOrEqual(t, decompressedSize(small), int64(128<<10))
}

// FuzzBundle unpacks what a damaged row may hold; what was packed comes back.
func FuzzBundle(f *testing.F) {
	f.Add([]byte("{\"event\":1}\n{\"asked\":1}\n{\"asked\":2}\n{\"audit\":1}\n"), []byte{1, 2, 1})
	f.Add([]byte("x\n"), []byte{0xff})
	f.Fuzz(func(t *testing.T, text, order []byte) {
		if len(text) > 0 && text[len(text)-1] == '\n' {
			p := newPacker()
			p.add(text)
			b := p.finish()
			got, err := b.unpack()
			require.NoError(t, err)
			require.Equal(t, string(text), string(got))
			b.parts = order
			if got, err := b.unpack(); err == nil {
				require.Len(t, got, len(text), "no line is lost or made up")
			}
			p.parts = nil // it is not the packer's
			p.release()
		}
		b := bundle{kept: text, rest: order, parts: order}
		_, err := b.unpack()
		_ = err // of what is not compressed there is nothing to say but that it ends
	})
}
