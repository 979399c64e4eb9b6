// Package inspect is a client of the inspector, which `runteam serve` is: an HTTP API that shows and
// steers the runs of a journal.
//
//	c, err := inspect.New("http://127.0.0.1:7337", token)
//	if err != nil {
//		return err
//	}
//	id, err := c.Start(ctx, inspect.Start{Spec: "claims", Inputs: map[string]string{"claim": text}})
//	if err != nil {
//		return err
//	}
//	for e, err := range c.Events(ctx, id, 0) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(e.Type)
//	}
//	run, err := c.Run(ctx, id)
//
// The token is that of --token-file or $RUNTEAM_INSPECT_TOKEN of the server. Everything that the server
// sends is in the form that its viewer may see. Where a document is large, a method returns its JSON,
// which [OpenAPI] describes.
//
// The methods return an [*Error] for what the server refuses, and another error if it cannot be
// reached. Only [Client.Events] and [Client.Stream] connect again by themselves.
package inspect
