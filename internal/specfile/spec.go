// Package specfile reads and writes spec files.
//
// [Load] reads a spec file, in YAML or JSON, and every file that it names. It returns a
// [File] in the types of the other packages, or an [*Error] that lists everything wrong,
// each [Problem] with its line and column. [File.Build] and [File.Locate] turn the pointers
// of problems that a team finds into places in the files. [File.WithPlan] writes a spec with
// the tasks of a plan, and [JSONSchema] describes spec files for editors. Package spec is
// the public API.
//
// Load runs nothing, uses no network and reads no clock: the same files, options and
// environment give the same result.
package specfile

import (
	"cmp"
	"errors"
	"io"
	"io/fs"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/runteam/runteam/llm/limit"
	"github.com/runteam/runteam/task"
)

// Conditions of a file. Problems wrap them where they apply.
var (
	ErrNotFound = error(notFound{})         // the file, or team.yaml in the folder, does not exist
	ErrRefused  = errors.New("refused")     // a key of the original that runteam does not support
	ErrUnknown  = errors.New("unknown key") // a key that does not exist
	ErrInvalid  = errors.New("invalid")     // a value of the wrong kind or out of range
	ErrSyntax   = errors.New("syntax")      // a file that is not valid YAML or JSON, or uses unsupported syntax
	ErrRead     = errors.New("cannot read") // a file that cannot be used
)

// notFound is the type of [ErrNotFound], which is an [fs.ErrNotExist] too.
type notFound struct{}

func (notFound) Error() string { return "no spec file" }

func (notFound) Is(target error) bool { return target == fs.ErrNotExist }

// Options say what to load. The zero value loads team.yaml (or .yml, .json) of
// the working directory.
type Options struct {
	Dir workdir.Dir // where Path and the other paths of the options start; empty means the working directory

	Path  string    // file; directory: its team.yaml, team.yml or team.json; "": the working directory; "-": Stdin
	Stdin io.Reader // read, once, for a path that is "-"; nil is an empty file

	// Team and Orchestrator are the paths of extra files: the team of a file that has only
	// tasks, and settings that override the spec's. Empty means none. With Team and
	// without Path, the spec file is the whole spec.
	Team, Orchestrator string

	// Goal replaces the spec's goal, whose label stays; the tasks of the spec are then not
	// run. Empty means the spec's own.
	Goal string

	// Chat reads the spec for the turns of a session: Agent, the spec's own chat or else the
	// coordinator answers them, and tasks and goal of the spec are not used.
	Chat  bool
	Agent string // the name of an agent, or coordinator; empty means as the spec says

	// Coordinator is the path of a file with the keys of the spec's
	// coordinator, or with the key coordinator, in place of the spec's own.
	Coordinator string

	// Inputs replace the texts of inputs that the spec declares, by name: the path of a
	// file, "-", or run:RUN/TASK for a result of an earlier run. The input keeps its label,
	// which the label of a result can only raise.
	Inputs map[string]string
	Params map[string]string // K: value of the parameter K that the spec declares
	Models []string          // MODEL for all agents and the coordinator, or AGENT=MODEL for one; later ones win

	// Stored are copies of files, from [File.Stored]. A copy replaces standard input and a
	// file that does not exist. Files that exist are read again.
	Stored []StoredFile

	// StoredOnly reads only Stored, to show a run as it was. A file without a copy is then
	// an error.
	StoredOnly bool

	// Result returns the result of a task of an earlier run, as the Result method of a
	// journal does. A run may be named by the beginning of its ID in Inputs alone, and not
	// in a file. Nil means that no input can be such a result.
	Result func(run, task string) (*envelope.Envelope, error)

	members func() []string // of [LoadPolicy]

	// Lookup returns the variables of the environment for ${NAME} in baseURL, apiKey,
	// headers, model and paths. Nil means that none is set. Variables that begin with
	// RUNTEAM_ are never used.
	Lookup func(name string) (string, bool)

	// Names are what messages call the fields of Options, by the name of the field, such
	// as a flag of a command; without one it is called Options.Goal and so on. The name
	// UserAccepts is how the user gets to see more.
	Names map[string]string

	// AllowEnv lists where variables may be sent; see [ParseEnvUse]. Uses that are not
	// listed and not [EnvUse].Known are an [*EnvError].
	AllowEnv []EnvUse

	// Trusted, if it is not nil, is called at most once, when AllowEnv does not
	// allow everything, with the path of the spec and all uses that are not Known.
	// It returns whether they all are allowed.
	Trusted func(path string, uses []EnvUse) bool

	// Offline is for callers that call no model. Variables then need not be set or allowed;
	// those that are not stay as written.
	Offline bool

	// CallsTools is for callers that call tools, even if they are Offline: variables in the
	// settings of tools must be set and allowed.
	CallsTools bool

	// Unlisted accepts MCP servers without allow, for callers that list what servers offer.
	Unlisted bool

	policyAlone bool // only the policy is used; see [LoadPolicy]
	unbound     bool // accepts inputs and parameters without a text or value; see [Declare]
}

// called returns what messages call a field of the options.
func (o *Options) called(field string) string { return cmp.Or(o.Names[field], "Options."+field) }

// A File is a spec that was read, with defaults and options applied. It is
// immutable by convention and safe for concurrent use.
type File struct {
	Path string // as given or found; "-" for standard input
	Dir  string // folder that its relative paths start from
	Name string // name of the team

	Description string // what the team does; may be empty

	Agents []Agent       // in the order written
	Config engine.Config // all but Agents and Coordinator, which Build fills in
	Tasks  []task.Spec   // in the order written; none for a file that only defines a team, and for a goal that is to be planned

	// Goal is the goal for the team's RunTeam. It is nil without a goal, and for a file with
	// tasks, whose results answer Run.Answer.
	Goal *engine.Goal

	// Coordinator plans and answers goals. It is nil only if the file has tasks and neither a
	// goal nor the key coordinator.
	Coordinator *Coordinator

	ForSession

	Run      engine.RunOptions // inputs, messages, output, limits
	Offline  string            // path of the script for offline runs, absolute or from the working directory; "" means none
	Compat   bool              // written in a form of the original: it has the key team, or came with Options.Team
	Warnings []Problem         // accepted but probably unintended, in the order of the text

	Tools *Toolbox // the tools that it declares and that the agents have

	// Env lists where variables of the environment are sent, by name, without the key that a
	// client reads from the environment itself.
	Env []EnvUse

	// Limits bound the calls to endpoints, by base URL; nil if the file is empty.
	Limits map[string]limit.Limits

	offlineShown string // Offline with ${NAME} for values of the environment

	reads  []string // the files that it names
	places *places
}

// ForSession says who answers the turns of a session.
type ForSession struct {
	Chat     *Chat  // the key chat; nil without it
	Answerer string // an agent, or coordinator; empty unless the file was read with Options.Chat
}

// A Chat says who answers the turns of a session, and from which inputs.
type Chat struct {
	Agent  string // an agent, or coordinator; empty means the coordinator
	Inputs []string
}

// OfflineAsWritten returns Offline with ${NAME} in place of values of the
// environment, for messages.
func (f *File) OfflineAsWritten() string { return f.offlineShown }

// An Agent is one member of the team and how its model is reached. The
// Member's Agent is nil until [File.Build].
type Agent struct {
	Member engine.Member
	Connection
	Process *agent.Process // the command that it is; nil for a model and a person. It has no Connection
	Person  bool           // it is a person, and has no Connection
	Users   []string       // who can answer for the person, as [username.Parse] writes them; none if anybody can
}
