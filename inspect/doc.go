// Package inspect is a client of `runteam serve`, an HTTP API that shows and steers the runs of a
// journal.
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
// The token is the one of --token-file or $RUNTEAM_INSPECT_TOKEN of the server. The server withholds
// what is above the clearance of its viewer (--accepts). Methods return large documents as JSON, which
// [OpenAPI] describes.
//
// If the server refuses a request, the error is an [*Error]. Only [Client.Events] and [Client.Stream]
// retry.
package inspect
