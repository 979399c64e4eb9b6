package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/runteam/runteam/inspect"
	"github.com/runteam/runteam/steer"
)

// A stand-in for runteam serve with one run.
func exampleServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "POST /api/v1/runs":
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"runId":"7f3c"}`)
		case "GET /api/v1/runs/7f3c/events":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: 1\nevent: run_start\ndata: {}\n\nid: 2\nevent: run_complete\ndata: {}\n\nevent: end\ndata: {}\n\n")
		default:
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"error":{"code":"conflict","message":"run 7f3c is not running (ok)"}}`)
		}
	}))
}

func Example() {
	server := exampleServer() // runteam serve claims.yaml --token-file token.txt
	defer server.Close()
	ctx := context.Background()
	c, err := inspect.New(server.URL, "the token of token.txt")
	if err != nil {
		panic(err)
	}
	run, err := c.Start(ctx, inspect.Start{Spec: "claims", Inputs: map[string]string{"claim": "The roof leaks."}})
	if err != nil {
		panic(err)
	}
	for e, err := range c.Events(ctx, run, 0) {
		if err != nil {
			panic(err)
		}
		fmt.Println(e.Position, e.Type)
	}
	// Output:
	// 1 run_start
	// 2 run_complete
}

func ExampleClient_Steer() {
	server := exampleServer()
	defer server.Close()
	c, err := inspect.New(server.URL, "the token of token.txt")
	if err != nil {
		panic(err)
	}
	_, err = c.Steer(context.Background(), "7f3c", steer.Command{Kind: steer.Pause, Reason: "the prices are wrong"})
	if refused, ok := errors.AsType[*inspect.Error](err); ok {
		fmt.Println(refused.Code+":", refused.Message)
	}
	// Output: conflict: run 7f3c is not running (ok)
}
