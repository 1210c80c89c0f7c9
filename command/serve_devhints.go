// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/examples/requests"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/registry"
)

const (
	// devPatience is how long the hints of --dev wait for the first discovery, so that the call among them is one that
	// the extension answers, and devLook how often they look for a handler after that.
	devPatience = 2 * time.Second
	devLook     = time.Second / 2
)

// devHints are what serve --dev prints: where the certificates are, and commands to copy.
type devHints struct {
	options   *serveOptions
	out       io.Writer
	hooks     *catalog.Catalog
	registry  *registry.Registry
	addresses chan [2]net.Addr
}

func newDevHints(o *serveOptions, out io.Writer, hooks *catalog.Catalog, r *registry.Registry) *devHints {
	return &devHints{options: o, out: out, hooks: hooks, registry: r, addresses: make(chan [2]net.Addr, 1)}
}

// listen makes Run print. It may be called once.
func (d *devHints) listen(https, diagnostics net.Addr) {
	d.addresses <- [2]net.Addr{https, diagnostics}
}

// Run prints the hints once all addresses listen and the extensions have been discovered; without a handler then, it
// prints the calls to copy as soon as there is one.
func (d *devHints) Run(ctx context.Context) error {
	if !d.options.dev.enabled {
		return nil
	}
	var addresses [2]net.Addr
	select {
	case <-ctx.Done():
		return nil
	case addresses = <-d.addresses:
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(devPatience):
	case <-d.registry.Ready():
	}
	calls := d.calls(addresses[0])
	d.print(addresses[0], addresses[1], calls)
	look := time.NewTicker(devLook)
	defer look.Stop()
	for calls == "" {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		if calls = d.calls(addresses[0]); calls != "" {
			_, _ = fmt.Fprintf(d.out, "\nThere is a handler now:\n\n%s", calls)
		}
	}
	return nil
}

func (d *devHints) print(https, diagnostics net.Addr, calls string) {
	program := d.options.dev.program
	_, _ = fmt.Fprintf(d.out, `
The certificates are in %s; the next start uses them again. Commands to copy:

  %s get handlers --diagnostics http://%s
%s`, cmdline.ShellWord(d.options.certDir), program, diagnostics, calls)
	if calls == "" {
		discovery := hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: hook.Discovery}
		_, _ = fmt.Fprintf(d.out, "  %s -d '{}'\n\nNo handler is known yet. To see why:\n\n"+
			"  %s get extensions --diagnostics http://%s\n\n"+
			"As soon as there is a handler, commands that call it are printed here.\n",
			d.curl(https, discovery, ""), program, diagnostics)
	}
	if d.options.diagnostics.ui {
		_, _ = fmt.Fprintf(d.out, "\nThe page about the extensions is at http://%s/.\n", diagnostics)
	}
}

// ca returns the file with the CA, for a shell.
func (d *devHints) ca() string {
	return cmdline.ShellWord(filepath.Join(d.options.certDir, devcert.CAFile))
}

// curl returns a command that calls a hook, without its body.
func (d *devHints) curl(https net.Addr, of hook.GroupVersionHook, handler string) string {
	url := "https://" + https.String() + of.Path(handler)
	return fmt.Sprintf("curl --cacert %s %s -H 'Content-Type: application/json'", d.ca(), url)
}

// calls returns the lines with the commands that call a hook which has a handler, preferably a hook that there is an
// example of; nothing if no hook has a handler.
func (d *devHints) calls(https net.Addr) string {
	own, program := "", d.options.dev.program
	snapshot := d.registry.Snapshot()
	for _, h := range d.hooks.Hooks() {
		handlers := snapshot.Handlers(h.GroupHook())
		if len(handlers) == 0 || h.Singleton() {
			continue
		}
		handler, flags := "", " --ca "+d.ca()
		if !h.Mergeable {
			handler = handlers[0].Name
			flags = " --handler " + handler + flags
		}
		if https.String() != "127.0.0.1:9443" {
			flags += " --server https://" + https.String()
		}
		curl := d.curl(https, h.GroupVersionHook, handler)
		if requests.Example(h.GroupVersionHook) == nil { // a hook of the program's own
			own = cmp.Or(own, fmt.Sprintf("  # with your request in the file request.json:\n"+
				"  %s call %s -f request.json%s\n  %s -d @request.json\n", program, h.Hook, flags, curl))
			continue
		}
		example := fmt.Sprintf("%s call %s --example", program, h.Hook)
		return fmt.Sprintf("  %s | %s call %s -f -%s\n  %s -o json | %s -d @-\n",
			example, program, h.Hook, flags, example, curl)
	}
	return own
}
