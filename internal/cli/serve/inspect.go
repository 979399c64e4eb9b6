package serve

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/label"
)

// Beside returns the function that starts the server of run --inspect, which shows and steers one run.
func Beside(con *console.Console, version string) run.Attend {
	return func(ctx context.Context, id string, j *journals.Flags) (*run.Attendant, error) {
		token, err := programToken(con, false)
		if err != nil {
			return nil, err
		}
		opened, _, err := journals.Open(con, j, journals.ToChange)
		if err != nil {
			return nil, err
		}
		l, err := listenAnywhere(ctx)
		if err != nil {
			return nil, errors.Join(exit.Errorf(exit.KindIO, "--inspect: %w", withoutAddress(err)), opened.Close())
		}
		site := newSite(con, opened, j, label.Confidential, version)
		a := site.live.attend(id)
		a.Answers = true // in the page
		o := site.options()
		o.Access = inspector.Access{Tokens: inspector.OneToken(token, ""), Logins: &inspector.Logins{}, Hosts: inspector.HostsOf(l.Addr())}
		links, link := printLinks(con, "runteam: the inspector of the run: ", func() string { return linkOf(addressOf(l.Addr()), o.Access.Logins.NewKey()) })
		serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // so that it can show the end of an interrupted run
		var all sync.WaitGroup
		all.Go(func() { _ = inspector.Serve(serving, l, nil, inspector.New(o)) }) // the run does not need it
		all.Go(func() { links.onSignals(serving) })
		closeBrowser := openBrowser(ctx, con, link)
		a.Close = func(ended bool) {
			if ended {
				linger(ctx, con, func() string {
					if o.Access.Logins.Used() {
						return ""
					}
					return links.link()
				})
			}
			stop()
			all.Wait()
			links.stop()
			closeBrowser()
			_ = opened.Close() // what was sent is durable already
		}
		return a, nil
	}
}

// listenAnywhere listens on this computer, at the usual port if it is free.
func listenAnywhere(ctx context.Context) (net.Listener, error) {
	var c net.ListenConfig
	if l, err := c.Listen(ctx, "tcp", "127.0.0.1:"+inspector.DefaultPort); err == nil {
		return l, nil
	}
	return c.Listen(ctx, "tcp", "127.0.0.1:0")
}

// linger waits for Enter if the user has a terminal. The first link is far above by now, so a link is printed
// again unless it returns "", since a browser has the page.
func linger(ctx context.Context, con *console.Console, link func() string) {
	if ctx.Err() != nil || !con.IsTerminal(con.Stdin) || !con.IsTerminal(con.Stderr) {
		return
	}
	text := "runteam: the run has ended; press Enter to close the inspector"
	if unused := link(); unused != "" {
		text += ": " + unused
	}
	con.Say("%s", text)
	ctx, cancel := context.WithCancel(ctx)
	onEnter(ctx, con, cancel)
	cancel()
}
