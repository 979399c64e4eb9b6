package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
)

func ExampleOpen() {
	folder, _ := os.MkdirTemp("", "journal")
	defer os.RemoveAll(folder)
	ctx := context.Background()
	j, err := journal.Open(filepath.Join(folder, "runs.db"), journal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()
	run, _ := j.Begin(ctx, journal.Info{Run: "4f1c", Name: "claims"})
	durable := make(chan error)
	run.Append([]record.Entry{{Begin: &record.RunStart{Run: "4f1c", Time: time.Now()}}}, func(err error) { durable <- err })
	fmt.Println(<-durable)
	_, err = run.Close(ctx)
	fmt.Println(err)

	s, err := j.Find(ctx, "4f")
	fmt.Println(s.Run, s.Name, s.Status, err)
	// Output:
	// <nil>
	// <nil>
	// 4f1c claims interrupted <nil>
}
