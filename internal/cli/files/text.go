package files

import (
	"context"
	"io"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/workdir"
)

// ReadText reads the text in the file of a flag, which errors name; - is stdin. It reads at most one byte more than the
// limit, so that the caller notices a longer text.
func ReadText(ctx context.Context, stdin io.Reader, dir workdir.Dir, flag, path string, limit int64) (string, error) {
	raw, err := Await(ctx, func() ([]byte, error) {
		if path == "-" {
			return io.ReadAll(io.LimitReader(stdin, limit+1))
		}
		in, err := dir.Open(path)
		if err != nil {
			return nil, err
		}
		defer in.Close() //nolint:errcheck // it only read
		return io.ReadAll(io.LimitReader(in, limit+1))
	})
	if err != nil {
		return "", exit.FileError(flag+" "+path, err)
	}
	return string(raw), nil
}
