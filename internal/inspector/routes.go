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
	offered func(*Offer) bool // nil means always
	serve   func(*request) error
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
func get(path string, offered func(*Offer) bool, serve func(*request) error) route {
	return route{Route{http.MethodGet, API + path}, offered, serve}
}

func post(path string, offered func(*Offer) bool, serve func(*request) error) route {
	return route{Route{http.MethodPost, API + path}, offered, serve}
}

func put(path string, offered func(*Offer) bool, serve func(*request) error) route {
	return route{Route{http.MethodPut, API + path}, offered, serve}
}

// retryAfter is how many seconds a client waits before it asks the server that follows one that stops.
const retryAfter = "5"

// working returns the function of a route that has runs work, which a server that is to stop refuses.
func working(serve func(*request) error) func(*request) error {
	return func(q *request) error {
		select {
		case <-q.h.o.Drain:
			q.w.Header().Set("Retry-After", retryAfter)
			return errStopping
		default:
			return serve(q)
		}
	}
}

// errStopping reports a server that is to stop.
var errStopping error = &Error{Code: Unavailable, Message: "the server is stopping: it starts, resumes and steers no runs", Hint: "send the request to the server that follows it"}

// These report what an inspector offers.
func hasRuns(o *Offer) bool      { return o.Runs != nil }
func hasReceipts(o *Offer) bool  { return o.Receipts != nil }
func hasQuestions(o *Offer) bool { return o.Questions != nil }
func hasGraph(o *Offer) bool     { return o.Graph != nil }
func hasFlow(o *Offer) bool      { return o.Flow != nil }
func hasHandoffs(o *Offer) bool  { return o.Handoffs != nil }
func hasComparer(o *Offer) bool  { return o.Comparer != nil }
func hasExporter(o *Offer) bool  { return o.Exporter != nil }
func hasWatcher(o *Offer) bool   { return o.Watcher != nil }
func hasStreams(o *Offer) bool   { return o.Streams != nil }
func hasSteerer(o *Offer) bool   { return o.Steerer != nil }
func hasStarter(o *Offer) bool   { return o.Starter != nil }
func hasGovernor(o *Offer) bool  { return o.Governor != nil }
func hasUnseen(o *Offer) bool    { return o.Unseen != nil }
func hasAnswerer(o *Offer) bool  { return o.Answerer != nil }

// routes are all routes of the API.
var routes = slices.Concat(readRoutes(), writeRoutes(), governanceRoutes())

func readRoutes() []route {
	return []route{
		get("/viewer", nil, (*request).viewer),
		get("/openapi.json", nil, (*request).openAPI),
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
		get("/runs/{run}/events", hasWatcher, (*request).events),
		get("/runs/{run}/stream", hasStreams, (*request).stream),
		get("/runs/{run}/graph", hasGraph, document(graphOf)),
		get("/runs/{run}/flow", hasFlow, document(flowOf)),
		get("/runs/{run}/handoffs", hasHandoffs, document(handoffsOf)),
		get("/runs/{run}/compare/{other}", hasComparer, document(comparisonOf)),
		get("/runs/{run}/export", hasExporter, (*request).export),
		get("/unseen-runs", hasUnseen, document(unseenOf)),
		get("/specs", hasStarter, document(specsOf)),
	}
}

func writeRoutes() []route {
	return []route{
		post(signOutPath, nil, (*request).signOut),
		post("/runs", hasStarter, working((*request).start)),
		post("/estimates", hasStarter, (*request).estimate),
		post("/chats", hasStarter, working((*request).say)),
		post("/runs/{run}/questions/{question}/answer", hasAnswerer, (*request).answer),
		post("/questions/{question}/answer", hasAnswerer, (*request).answer),
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
		get("/specs/{spec}/governance/handoff-rules", hasStarter, (*request).rulesOfSpec),
		put("/specs/{spec}/governance/handoff-rules", hasStarter, (*request).replaceRulesOfSpec),
	}
	for _, of := range []string{"", "/runs/{run}"} {
		all = append(all,
			get(of+"/governance/handoff-rules", hasGovernor, (*request).rules),
			get(of+"/governance/handoff-rules/{from}/{to}", hasGovernor, document(pairOf)),
			put(of+"/governance/handoff-rules", hasGovernor, working((*request).replaceRules)))
	}
	return all
}
