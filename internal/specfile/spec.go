// Package specfile answers what a spec file says, and where.
//
// [Load] reads a team file, in YAML or JSON, and everything that it names. It
// returns a [File] in the types of the other packages, or an [*Error] that
// lists everything wrong with it, each [Problem] with its line and column. What
// only a team can check is checked there and located here: [File.Build] and
// [File.Locate] turn the pointers of [task.Problems] into places in the files.
// [File.WithPlan] writes a spec with the tasks of a plan, and [JSONSchema]
// tells editors what a spec may say. Package spec is its public part.
//
// Nothing is run, no network is used and no clock read: the same files,
// flags and environment give the same answer.
package specfile

import (
	"cmp"
	"errors"
	"io"
	"io/fs"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/llm/limit"
	"github.com/runteam/runteam/task"
)

// Conditions of a file. Problems wrap them where they apply.
var (
	ErrNotFound = error(notFound{})           // the file, or team.yaml in the folder, does not exist
	ErrNotBuilt = errors.New("not built yet") // a known key that has no effect yet
	ErrRefused  = errors.New("refused")       // a key of the original that runteam does not support, or has under another name
	ErrUnknown  = errors.New("unknown key")   // a key that does not exist
	ErrInvalid  = errors.New("invalid")       // a value of the wrong kind or out of range
	ErrSyntax   = errors.New("syntax")        // a file that is no YAML or JSON, or uses what is refused of it
	ErrRead     = errors.New("cannot read")   // a file that a spec names and that cannot be taken
)

// notFound is the type of [ErrNotFound], which is an [fs.ErrNotExist] too.
type notFound struct{}

func (notFound) Error() string { return "no spec file" }

func (notFound) Is(target error) bool { return target == fs.ErrNotExist }

// Options say what to load. The zero value loads team.yaml (or .yml, .json) of
// the working directory.
type Options struct {
	Path  string    // file; directory: its team.yaml, team.yml or team.json; "": the working directory; "-": Stdin
	Stdin io.Reader // read, once, for a path that is "-"; nil is an empty file

	// Team and Orchestrator are the paths of extra files: the team that a tasks
	// file does not bring, and settings that take the place of the spec's own.
	// Empty means none. With Team and without Path, the team file is the spec.
	Team, Orchestrator string

	// Goal takes the place of the spec's goal, whose label stays; the tasks of
	// the spec are then not run. Empty means the spec's own.
	Goal string

	// Coordinator is the path of a file with the keys of the spec's
	// coordinator, or with the key coordinator, in place of the spec's own.
	Coordinator string

	// Inputs bring the text of an input that the spec declares, by its name: the
	// path of a file, "-", or run:RUN/TASK for a result of an earlier run. The
	// input keeps its label, which that of a result can only raise.
	Inputs map[string]string
	Params map[string]string // K: value of the parameter K that the spec declares
	Models []string          // MODEL for all agents and the coordinator, or AGENT=MODEL for one; later ones win

	// Stored are copies of files, of [File.Stored]: each stands in for the file
	// of its path if that does not exist, and for standard input. What exists is
	// read anew.
	Stored []StoredFile

	// StoredOnly reads nothing but Stored, whatever stands in the files by now,
	// as for looking at a run as it was. A file of which there is no copy is then
	// an error.
	StoredOnly bool

	// Result returns the result of a task of an earlier run, as the Result method of a
	// journal does. A run may be named by the beginning of its ID in Inputs alone, and not
	// in a file. Nil means that no input can be such a result.
	Result func(run, task string) (*envelope.Envelope, error)

	// Lookup gives the environment for ${NAME} in baseURL, apiKey, headers,
	// model and paths. Nil means that no variable is set. Whatever it says,
	// variables that begin with RUNTEAM_ are never used.
	Lookup func(name string) (string, bool)

	// Names are what messages call the fields of Options, by the name of the field, such
	// as a flag of a command; without one it is called Options.Goal and so on. The name
	// UserAccepts is how the user gets to see more.
	Names map[string]string

	// AllowEnv says which variables may go where; see [ParseEnvUse]. Without it,
	// only what is [EnvUse].Known may: anything else is an [*EnvError].
	AllowEnv []EnvUse

	// Trusted, if it is not nil, is called at most once, when AllowEnv does not
	// allow everything, with the path of the spec and all uses that are not Known.
	// It returns whether they all are allowed.
	Trusted func(path string, uses []EnvUse) bool

	// Offline is for callers that call no model. No variable needs to be set or
	// allowed then: what is not stays as it is written.
	Offline bool
}

// called returns what messages call a field of the options.
func (o *Options) called(field string) string { return cmp.Or(o.Names[field], "Options."+field) }

// A File is a spec that was read, with defaults and flags applied. It is
// immutable by convention and safe for concurrent use.
type File struct {
	Path string // as given or found; "-" for standard input
	Dir  string // folder that its relative paths start from
	Name string // name of the team

	Agents []Agent       // the roster, in the order written
	Config engine.Config // all but Agents and Coordinator, which Build fills in
	Tasks  []task.Spec   // in the order written; none for a roster and for a goal that is to be planned

	// Goal is what the coordinator plans the tasks for, for the team's RunTeam.
	// Nil means that there is none, or that the tasks are written: then
	// Run.Answer is what it answers from their results.
	Goal *engine.Goal

	// Coordinator is who would plan and answer a goal. It is nil only if the
	// file has tasks and neither a goal nor the key coordinator.
	Coordinator *Coordinator

	Run      engine.RunOptions // inputs, messages, output, limits
	Offline  string            // path of the script for offline runs, absolute or from the working directory; "" means none
	Compat   bool              // written in a form of the original: it has the key team, or came with Options.Team
	Warnings []Problem         // what is accepted but worth a look, in the order of the text

	// Env lists which variables of the environment go where, by name. The key that
	// a client takes from the environment by itself is not among them.
	Env []EnvUse

	// Limits bound the calls to endpoints, by base URL; nil if the file says nothing.
	Limits map[string]limit.Limits

	offlineShown string // Offline with ${NAME} for values of the environment

	reads  []string // the files that it names and that were read
	places *places
}

// OfflineAsWritten returns Offline with ${NAME} in place of values of the
// environment, for messages.
func (f *File) OfflineAsWritten() string { return f.offlineShown }

// An Agent is one member of the roster and how its model is reached. The
// Member's Agent is nil until [File.Build].
type Agent struct {
	Member engine.Member
	Connection
}
