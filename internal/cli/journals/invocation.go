package journals

// An Invocation is how a run was asked for, as a journal keeps it so that it
// can be asked for again. How long a command may take is its own matter, and no
// part of it. Paths are as they were given, from Folder. What flags
// said of the work itself, the goal and the parameters, is kept as files are,
// since it may be as sensitive: see flagFiles.
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

	// Versions are what the answers of each agent depended on beside its prompts;
	// that of the coordinator is listed under its name.
	Versions map[string]string `json:"versions,omitempty"`

	// Endpoints are the base URLs that agents were asked at, which the environment
	// may have brought: their clearances count when the run is looked at again.
	Endpoints map[string]string `json:"endpoints,omitempty"`

	// Fallback are likewise the base URLs of the fallback of each agent that has one.
	Fallback map[string][]string `json:"fallback,omitempty"`

	ReplayArguments

	Copies []FileCopy `json:"copies,omitempty"` // of the files that are kept, what a journal has no place for
}

// SpecArguments name the spec of a run and what flags set in it.
type SpecArguments struct {
	Spec         string   `json:"spec,omitempty"` // - is standard input
	Found        string   `json:"found"`          // where the spec was, absolute; or -
	Team         string   `json:"team,omitempty"`
	Orchestrator string   `json:"orchestrator,omitempty"`
	Coordinator  string   `json:"coordinator,omitempty"`
	Goal         bool     `json:"goal,omitempty"`
	Inputs       []string `json:"inputs,omitempty"` // NAME=FILE
	Params       []string `json:"params,omitempty"` // names
	Models       []string `json:"models,omitempty"`
}

// ReplayArguments say which run a replay repeats, and what it leaves out of it.
type ReplayArguments struct {
	Of            string   `json:"of,omitempty"`
	Without       []string `json:"without,omitempty"`
	WithoutInputs []string `json:"withoutInputs,omitempty"`
}

// FileCopy is of a stored file where it was, and what was taken out of it.
type FileCopy struct {
	Path    string   `json:"path"`
	Found   string   `json:"found,omitempty"` // if it is not Path
	Without []string `json:"without,omitempty"`
}

// OmitsContext reports whether the run was one without some of its context.
func (v *Invocation) OmitsContext() bool { return len(v.Without)+len(v.WithoutInputs) > 0 }
