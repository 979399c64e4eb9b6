package serve

import (
	"errors"
	"io/fs"
	"net"
	"syscall"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// problem returns the inspector.Error for an error of the command; nil for nil.
func problem(err error) error {
	if _, ours := errors.AsType[*inspector.Error](err); ours || err == nil {
		return err
	}
	if list := exit.Problems(err); len(list) > 0 {
		e := &inspector.Error{Code: inspector.Invalid, Message: exit.NewDocument(exit.KindOf(err), err).Error.Message}
		for _, p := range list {
			text := p.Message
			if at := p.At(); at != "" {
				text = at + ": " + text
			}
			e.Problems = append(e.Problems, inspector.Problem{Message: text, Hint: p.Hint})
		}
		return e
	}
	if errors.Is(err, steer.ErrRefused) {
		if e := refused(err); e != nil {
			return e
		}
	}
	if _, unknown := errors.AsType[*journal.UnknownRunError](err); unknown { // with nothing that depends on other runs
		return &inspector.Error{Code: inspector.NotFound, Message: "there is no such run", Hint: "GET " + inspector.API + "/runs lists the runs"}
	}
	return &inspector.Error{Code: codeOf(err), Message: err.Error()}
}

// codes lists the codes of errors. The first that matches applies.
var codes = []struct {
	err  error
	code inspector.Code
}{
	{journal.ErrUnknownRun, inspector.NotFound},
	{task.ErrUnknown, inspector.NotFound},
	{steer.ErrInvalid, inspector.Invalid},
	{steer.ErrNotRunning, inspector.Conflict},
	{steer.ErrRefused, inspector.Conflict},
	{journal.ErrAnswered, inspector.Conflict},
	{journal.ErrNoQuestion, inspector.Conflict},
	{journal.ErrRefused, inspector.Conflict},
	{record.ErrAnswerer, inspector.Forbidden},
	{journal.ErrLeased, inspector.Conflict},
	{journal.ErrAnswerForm, inspector.Invalid},
	{journal.ErrNoKey, inspector.Invalid},
	{journal.ErrReadOnly, inspector.Forbidden},
}

func codeOf(err error) inspector.Code {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	switch exit.KindOf(err) {
	case exit.KindUsage, exit.KindValidation:
		return inspector.Invalid
	}
	return inspector.Unavailable
}

// whereToBegin says in the error for a folder without a journal how to get a page here. To show runs is no reason to
// create a journal, but a server that can start runs creates one.
func whereToBegin(con *console.Console, err error) error {
	if err.Error() != journals.NoJournal {
		return err
	}
	begin := `write "runteam serve SPEC" to start runs of a spec file in the browser; "runteam init" writes a first one`
	for _, name := range []string{"team.yaml", "team.yml", "team.json"} {
		if found, statErr := con.WorkDir.Stat(name); statErr == nil && found.Mode().IsRegular() {
			begin = `write "runteam serve ` + name + `" to start runs of that spec in the browser`
			break
		}
	}
	return exit.Errorf(exit.KindIO, "there is no journal here or in a folder above, so there are no runs to show; %s; --journal FILE names another journal", begin)
}

// socketAdvice says what to do about a socket at which a server cannot listen.
func socketAdvice(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ": make the folder of the socket first"
	case errors.Is(err, syscall.EINVAL):
		return ": its path has more bytes than a socket can have: write a shorter one, of 100 bytes or fewer"
	}
	return ""
}

// withoutAddress returns the cause of a listen error, without the address.
func withoutAddress(err error) error {
	if at, ok := errors.AsType[*net.OpError](err); ok {
		return at.Err
	}
	return err
}
