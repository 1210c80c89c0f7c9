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
// prints the call to copy as soon as there is one.
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
	call := d.call(addresses[0])
	d.print(addresses[0], addresses[1], call)
	look := time.NewTicker(devLook)
	defer look.Stop()
	for call == "" {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		if call = d.call(addresses[0]); call != "" {
			_, _ = fmt.Fprintf(d.out, "\nThere is a handler now:\n\n  %s\n", call)
		}
	}
	return nil
}

func (d *devHints) print(https, diagnostics net.Addr, call string) {
	discovery := hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: hook.Discovery}
	_, _ = fmt.Fprintf(d.out, `
The certificates are in %s; the next start uses them again. Commands to copy:

  curl --cacert %s https://%s%s -H 'Content-Type: application/json' -d '{}'
  hookgate get handlers --diagnostics http://%s
`, cmdline.ShellWord(d.options.certDir), d.ca(), https, discovery.Path(""), diagnostics)
	if call != "" {
		_, _ = fmt.Fprintf(d.out, "  %s\n", call)
	} else {
		_, _ = fmt.Fprintf(d.out, "\nNo handler is known yet. To see why:\n\n"+
			"  hookgate get extensions --diagnostics http://%s\n\n"+
			"As soon as there is a handler, a command that calls it is printed here.\n", diagnostics)
	}
	if d.options.diagnostics.ui {
		_, _ = fmt.Fprintf(d.out, "\nThe page about the extensions is at http://%s/.\n", diagnostics)
	}
}

// ca returns the file with the CA, for a shell.
func (d *devHints) ca() string {
	return cmdline.ShellWord(filepath.Join(d.options.certDir, devcert.CAFile))
}

// call returns a command that calls a hook which has a handler, preferably one that there is an example of; nothing if
// no hook has a handler.
func (d *devHints) call(https net.Addr) string {
	own := ""
	snapshot := d.registry.Snapshot()
	for _, h := range d.hooks.Hooks() {
		handlers := snapshot.Handlers(h.GroupHook())
		if len(handlers) == 0 || h.Singleton() {
			continue
		}
		flags := " --ca " + d.ca()
		if !h.Mergeable {
			flags = " --handler " + handlers[0].Name + flags
		}
		if https.String() != "127.0.0.1:9443" {
			flags += " --server https://" + https.String()
		}
		if requests.Example(h.GroupVersionHook) == nil { // a hook of the program's own
			own = cmp.Or(own, fmt.Sprintf("hookgate call %s -f request.yaml%s", h.Hook, flags))
			continue
		}
		return fmt.Sprintf("hookgate call %s --example | hookgate call %[1]s -f -%s", h.Hook, flags)
	}
	return own
}
