package inspector

import (
	"net/http"
	"slices"
)

// A Route is a method and a path of the API, in the form of [http.ServeMux].
type Route struct{ Method, Path string }

// A route is a Route and the function that writes the answer or returns an error.
type route struct {
	Route
	offered func(*Options) bool // nil means always
	serve   func(*Handler, http.ResponseWriter, *http.Request) error
}

// API is the path prefix of all routes except those of the page.
const API = "/api/v1"

// Routes returns all routes of the API, whatever an inspector offers.
func Routes() (all []Route) {
	for i := range routes {
		all = append(all, routes[i].Route)
	}
	return all
}

// get, post and put make routes.
func get(path string, offered func(*Options) bool, serve func(*Handler, http.ResponseWriter, *http.Request) error) route {
	return route{Route{http.MethodGet, API + path}, offered, serve}
}

func post(path string, offered func(*Options) bool, serve func(*Handler, http.ResponseWriter, *http.Request) error) route {
	return route{Route{http.MethodPost, API + path}, offered, serve}
}

func put(path string, offered func(*Options) bool, serve func(*Handler, http.ResponseWriter, *http.Request) error) route {
	return route{Route{http.MethodPut, API + path}, offered, serve}
}

// retryAfter is how many seconds a client waits before it asks the server that follows one that stops.
const retryAfter = "5"

// working returns the function of a route that has runs work, which a server that is to stop refuses.
func working(serve func(*Handler, http.ResponseWriter, *http.Request) error) func(*Handler, http.ResponseWriter, *http.Request) error {
	return func(h *Handler, w http.ResponseWriter, r *http.Request) error {
		select {
		case <-h.o.Drain:
			w.Header().Set("Retry-After", retryAfter)
			return &Error{Code: Unavailable, Message: "the server is stopping: it starts, resumes and steers no runs", Hint: "send the request to the server that follows it"}
		default:
			return serve(h, w, r)
		}
	}
}

// These report what an inspector offers.
func hasRuns(o *Options) bool      { return o.Runs != nil }
func hasReceipts(o *Options) bool  { return o.Receipts != nil }
func hasQuestions(o *Options) bool { return o.Questions != nil }
func hasGraph(o *Options) bool     { return o.Graph != nil }
func hasFlow(o *Options) bool      { return o.Flow != nil }
func hasHandoffs(o *Options) bool  { return o.Handoffs != nil }
func hasComparer(o *Options) bool  { return o.Comparer != nil }
func hasExporter(o *Options) bool  { return o.Exporter != nil }
func hasWatcher(o *Options) bool   { return o.Watcher != nil }
func hasStreams(o *Options) bool   { return o.Streams != nil }
func hasSteerer(o *Options) bool   { return o.Steerer != nil }
func hasStarter(o *Options) bool   { return o.Starter != nil }
func hasGovernor(o *Options) bool  { return o.Governor != nil }
func hasOpenAPI(o *Options) bool   { return len(o.OpenAPI) > 0 }

// routes are all routes of the API.
var routes = slices.Concat(readRoutes(), writeRoutes(), governanceRoutes())

func readRoutes() []route {
	return []route{
		get("/viewer", nil, document(viewerOf)),
		get("/openapi.json", hasOpenAPI, (*Handler).openAPI),
		get("/runs", hasRuns, document(listOf)),
		get("/runs/{run}", hasRuns, document(runOf)),
		get("/runs/{run}/tasks/{task}", hasRuns, document(taskOf)),
		get("/runs/{run}/blocks", hasRuns, document(blocksOf)),
		get("/runs/{run}/tasks/{task}/blocks", hasRuns, document(blocksOf)),
		get("/runs/{run}/usage", hasRuns, document(usageOf)),
		get("/runs/{run}/artifacts", hasRuns, document(artifactsOf)),
		get("/runs/{run}/session", hasRuns, document(sessionOf)),
		get("/runs/{run}/receipts", hasReceipts, document(receiptsOf)),
		get("/questions", hasQuestions, document(questionsOf)),
		get("/runs/{run}/questions", hasQuestions, document(questionsOf)),
		get("/runs/{run}/events", hasWatcher, (*Handler).events),
		get("/runs/{run}/stream", hasStreams, (*Handler).stream),
		get("/runs/{run}/graph", hasGraph, document(graphOf)),
		get("/runs/{run}/flow", hasFlow, document(flowOf)),
		get("/runs/{run}/handoffs", hasHandoffs, document(handoffsOf)),
		get("/runs/{run}/compare/{other}", hasComparer, document(comparisonOf)),
		get("/runs/{run}/export", hasExporter, (*Handler).export),
		get("/specs", hasStarter, document(specsOf)),
	}
}

func writeRoutes() []route {
	return []route{
		post("/runs", hasStarter, working((*Handler).start)),
		post("/estimates", hasStarter, (*Handler).estimate),
		post("/chats", hasStarter, working((*Handler).say)),
		post("/runs/{run}/questions/{question}/answer", hasSteerer, (*Handler).answer),
		post("/questions/{question}/answer", hasSteerer, (*Handler).answer),
		post("/runs/{run}/pause", hasSteerer, working(steerRun("pause"))),
		post("/runs/{run}/resume", hasSteerer, working(steerRun("resume"))),
		post("/runs/{run}/cancel", hasSteerer, working(steerRun("cancel"))),
		post("/runs/{run}/nodes/{task}/interrupt", hasSteerer, working(steerRun("interrupt"))),
		post("/runs/{run}/nodes/{task}/cancel", hasSteerer, working(steerRun("cancel"))),
		post("/runs/{run}/nodes/{task}/rerun", hasSteerer, working(steerRun("rerun"))),
		post("/runs/{run}/messages", hasSteerer, working(steerRun("message"))),
	}
}

func governanceRoutes() []route {
	all := []route{
		get("/specs/{spec}/governance/handoff-rules", hasStarter, (*Handler).rulesOfSpec),
		put("/specs/{spec}/governance/handoff-rules", hasStarter, (*Handler).replaceRulesOfSpec),
	}
	for _, of := range []string{"", "/runs/{run}"} {
		all = append(all,
			get(of+"/governance/handoff-rules", hasGovernor, (*Handler).rules),
			get(of+"/governance/handoff-rules/{from}/{to}", hasGovernor, document(pairOf)),
			put(of+"/governance/handoff-rules", hasGovernor, working((*Handler).replaceRules)))
	}
	return all
}
