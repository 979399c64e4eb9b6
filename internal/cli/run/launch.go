package run

import (
	"context"
	"sync"

	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
)

// An Attendant is what shows and steers a run in its process.
type Attendant struct {
	Stream  func(event.Delta) // takes what models write; nil if nobody watches
	Monitor *record.Monitor   // by which the run is steered
	Ended   func()            // is called when the run has ended
	Close   func(ended bool)  // is called when the command has printed the result of the run, or if it did not begin
}

// Attend returns the attendant of a run that is about to begin.
type Attend func(ctx context.Context, run string, j *journals.Flags) (*Attendant, error)

// attend has an attendant accompany the run, if it is to have one.
func (x *execution) attend(ctx context.Context) (err error) {
	if x.job.attend != nil {
		x.attendant, err = x.job.attend(ctx, x.file.Run.RunID, &x.job.Journal)
	}
	return err
}

// dismiss ends the attendance.
func (x *execution) dismiss() {
	if x.attendant != nil {
		x.attendant.Close(x.result != nil)
	}
}

// A Launch is a run that another command than run begins in its process. It asks nothing, prints only
// warnings, and is stored in the journal.
type Launch struct {
	Spec    source.SpecFlags
	Answers connect.AnswerFlags
	Journal journals.Flags
	Attend  Attend
	Begun   func(run string) // is called once the run has begun
}

// Launch begins a run and returns when it has ended, or could not begin. The status of a run that has
// ended is in the journal.
func (l Launch) Launch(ctx context.Context, con *console.Console) error {
	own := *con // reading a spec changes the environment
	con = &own
	j := &Job{Command: "run", SpecFlags: l.Spec, AnswerFlags: l.Answers, Progress: "none", Journal: l.Journal, noInput: true, attend: l.Attend}
	file, err := j.loadSpec(ctx, con)
	if err != nil {
		return err
	}
	x := &execution{con: con, job: j, file: file}
	begun := sync.OnceFunc(func() { l.Begun(file.Run.RunID) })
	x.watcher = func(event.Event) { begun() }
	defer x.dismiss()
	defer x.release()
	return file.Locate(x.perform(ctx))
}
