package tool_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/tool"
)

func ExampleNew() {
	type query struct {
		City string `json:"city" jsonschema:"name of the city"`
	}
	weather, err := tool.New("weather", "Returns the weather in a city.", func(_ context.Context, q query) (string, error) {
		return "sunny in " + q.City, nil
	}, tool.Options{Effect: tool.None})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A team makes the calls that its agents ask for; a test can make one itself.
	r, err := weather.Run(context.Background(), tool.Call{Arguments: json.RawMessage(`{"city": "Lisbon"}`)})
	fmt.Println(r.Text, err)
	// Output: sunny in Lisbon <nil>
}
