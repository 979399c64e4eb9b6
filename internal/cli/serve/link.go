package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/files"
)

// linkOf returns the login link of a server.
func linkOf(address, key string) string { return address + "/login?key=" + key }

// addressOf returns the URL of a server. For a listener on all interfaces it has the loopback address.
func addressOf(at net.Addr) string {
	host, port, _ := net.SplitHostPort(at.String())
	if isEvery(at) {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// isEvery reports whether a server listens on all interfaces.
func isEvery(at net.Addr) bool {
	host, _, _ := net.SplitHostPort(at.String())
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

// listenAdvice says what to do if the given address cannot be listened at.
func listenAdvice(err error, given string) string {
	if port, convErr := strconv.ParseUint(given, 10, 16); convErr == nil {
		return fmt.Sprintf("write 127.0.0.1:%d", port)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return "another runteam serve may have it: use its page, or --listen 127.0.0.1:0 for a port that is free"
	}
	return "write ADDRESS:PORT of this computer, such as 127.0.0.1:0 for a port that is free"
}

// A linkPrinter prints links, each with a new key.
type linkPrinter struct {
	con     *console.Console
	before  string        // the link, in its line
	link    func() string // returns a new one
	signals <-chan os.Signal
	stop    func() // receiving signals
}

// printLinks prints a link and, without a terminal, how to get another one. The caller calls stop.
func printLinks(con *console.Console, before string, link func() string) (p *linkPrinter, first string) {
	p = &linkPrinter{con: con, before: before, link: link}
	p.signals, p.stop = linkSignals()
	first = p.print()
	if command := linkCommand(); command != "" && !con.IsTerminal(con.Stdin) {
		con.Say("runteam: the link works once; to print another one here: %s", command)
	}
	return p, first
}

// print prints a new link, and returns it.
func (p *linkPrinter) print() string {
	link := p.link()
	p.con.Say("%s%s", p.before, link)
	return link
}

// onSignals prints a new link for each signal, until ctx ends.
func (p *linkPrinter) onSignals(ctx context.Context) {
	for {
		select {
		case <-p.signals:
			p.print()
		case <-ctx.Done():
			return
		}
	}
}

// onEnter calls do for each line that the user enters, until ctx ends. Without a terminal it does nothing.
func onEnter(ctx context.Context, con *console.Console, do func()) {
	if !con.IsTerminal(con.Stdin) {
		return
	}
	in := bufio.NewReader(con.Stdin)
	for {
		_, err := files.Await(ctx, func() (string, error) { return in.ReadString('\n') })
		if err != nil {
			return
		}
		do()
	}
}

// openBrowser opens a link in the browser of the desktop, if there is one. Call cleanUp at the end. The link
// is passed in a file that only the user can read: all users of a computer can see the arguments of a
// program.
func openBrowser(ctx context.Context, con *console.Console, link string) (cleanUp func()) {
	none := func() {}
	program := browserOf(con)
	if program == nil {
		return none
	}
	f, err := os.CreateTemp("", "runteam-*.html") // with mode 0600
	if err != nil {
		return none
	}
	remove := func() { _ = os.Remove(f.Name()) }
	_, err = fmt.Fprintf(f, "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=%s\"><title>runteam</title>\n", html.EscapeString(link))
	if err = errors.Join(err, f.Close()); err != nil {
		remove()
		return none
	}
	cmd := exec.CommandContext(ctx, program[0], append(program[1:], f.Name())...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		remove()
		return none
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the link is printed too
	}()
	return func() {
		_ = cmd.Cancel()
		<-done
		remove()
	}
}

// browserOf returns the program that opens the browser of the desktop; nil without a desktop or a terminal,
// and in CI.
func browserOf(con *console.Console) []string {
	set := func(name string) bool {
		value, _ := con.LookupEnv(name)
		return strings.TrimSpace(value) != ""
	}
	switch {
	case !con.IsTerminal(con.Stdin) || !con.IsTerminal(con.Stderr) || set("CI"):
		return nil
	case runtime.GOOS == "darwin":
		return []string{"open"}
	case runtime.GOOS != "windows" && (set("DISPLAY") || set("WAYLAND_DISPLAY")):
		return []string{"xdg-open"}
	}
	return nil
}
