package journals

import (
	"encoding/json"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/plan"
)

// An Invocation holds the arguments and flags of a run. A journal stores it so that the run can be
// resumed. Time limits are not part of it, since each command has its own. Paths are relative to
// Folder. The goal and the values of parameters are stored like files, since they may be as
// sensitive.
type Invocation struct {
	Folder string `json:"folder"` // the working directory
	SpecArguments

	Offline bool   `json:"offline,omitempty"`
	Script  string `json:"script,omitempty"`  // of --script
	Answers string `json:"answers,omitempty"` // the digest of the script that answered; none without one

	MaxConcurrency int      `json:"maxConcurrency,omitempty"`
	MaxTokenBudget int      `json:"maxTokenBudget,omitempty"`
	MaxCostBudget  float64  `json:"maxCostBudget,omitempty"` // US dollars
	Reuse          *bool    `json:"reuse,omitempty"`         // nil means as the spec says
	Fresh          []string `json:"fresh,omitempty"`

	// Tools is a digest of the definitions of the MCP servers' tools, which are stored like a file.
	Tools string `json:"tools,omitempty"`

	// Versions identify what the answers of each agent depend on besides its prompts.
	Versions map[string]string `json:"versions,omitempty"`

	// Endpoints are the base URLs of the agents, which may be from the environment. Their clearances
	// apply when the run is replayed.
	Endpoints map[string]string `json:"endpoints,omitempty"`

	// Fallback holds the base URLs of the fallback of each agent that has one.
	Fallback map[string][]string `json:"fallback,omitempty"`

	ReplayArguments

	AllowWidening bool `json:"allowWidening,omitempty"` // of the policy

	Request *Request `json:"request,omitempty"` // nil unless the run was requested with a reason

	Copies []FileCopy `json:"copies,omitempty"` // what the journal does not say about the stored files
}

// SpecArguments name the spec of a run, and hold the flags that set something in it.
type SpecArguments struct {
	Spec         string   `json:"spec,omitempty"` // - is standard input
	Found        string   `json:"found"`          // the absolute path of the spec; or -
	Team         string   `json:"team,omitempty"`
	Orchestrator string   `json:"orchestrator,omitempty"`
	Coordinator  string   `json:"coordinator,omitempty"`
	Goal         bool     `json:"goal,omitempty"`
	Inputs       []string `json:"inputs,omitempty"` // NAME=FILE
	Params       []string `json:"params,omitempty"` // names
	Models       []string `json:"models,omitempty"`
	StrictTools  bool     `json:"strictTools,omitempty"`
}

// ReplayArguments say which run a replay repeats, and what it omits.
type ReplayArguments struct {
	Of            string   `json:"of,omitempty"`
	Without       []string `json:"without,omitempty"`
	WithoutInputs []string `json:"withoutInputs,omitempty"`
}

// A FileCopy describes a stored file: its original path, and what was removed from the copy.
type FileCopy struct {
	Path    string   `json:"path"`
	Found   string   `json:"found,omitempty"` // if it differs from Path
	Without []string `json:"without,omitempty"`
}

// A Request says who requested a run of a server, and why.
type Request struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// Request returns who requested the run and why; nil if the run was not requested with a reason.
func (k *StoredRun) Request() *Request { return InvocationOf(&k.Info).Request }

// InvocationOf returns the invocation of a stored run. It is empty if another program began the run.
func InvocationOf(info *journal.Info) (v Invocation) {
	_ = json.Unmarshal(info.Invocation, &v)
	return v
}

// ModelName returns the name to show of a model that the spec of the run calls so: that of the script if one answered.
func (v *Invocation) ModelName(model string) string {
	if v.Offline && model != "" {
		return plan.ScriptedModel
	}
	return model
}

// OmitsContext reports whether the run is an experiment that omits context.
func (v *Invocation) OmitsContext() bool { return len(v.Without)+len(v.WithoutInputs) > 0 }
