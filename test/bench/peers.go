// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// The peers, in the order of their turns.
const (
	peerDirect       = "direct"
	peerReverseProxy = "ReverseProxy"
	peerNginx        = "nginx"
	peerBaseline     = "baseline"
	peerGateway      = "gateway"
)

// peer is a running server under test.
type peer struct {
	name    string
	address string
	// suffix is what follows a handler's name in the peer's paths.
	suffix  string
	process *process.Process
	pids    []int
	// idle is the resident memory before any load, in bytes.
	idle int64
}

func (p *peer) path(hookName, handler string) string {
	if handler != "" {
		handler += p.suffix
	}
	return hookPath(hookName, handler)
}

// complaint returns the end of the peer's log, to follow an error.
func (p *peer) complaint() string { return "\n  log of " + p.name + ":" + p.process.LogTail() }

// awaitPeer waits until the peer answers a call, then records its processes and its idle memory.
func awaitPeer(ctx context.Context, p *peer, pl payload, caPEM []byte) error {
	l := load{
		address: p.address, caPEM: caPEM, path: p.path(pl.hook, pl.handler), body: pl.body,
		callers: 1, protocol: http1Protocol,
	}
	err := poll(ctx, 20*time.Second, func() error {
		cs, err := l.open(ctx)
		if err != nil {
			return err
		}
		defer closeAll(cs)
		return cs[0].call()
	})
	if err != nil {
		return fmt.Errorf("%s gives no good answer: %w%s", p.name, err, p.complaint())
	}
	if p.pids, err = p.process.PIDs(); err != nil {
		return err
	}
	slices.Sort(p.pids)
	p.idle, err = process.Resident(p.pids)
	return err
}

// fleet holds the running peers.
type fleet struct {
	dir    string
	certs  certificates
	stderr io.Writer
	peers  []*peer
}

// start starts the null extension and the other peers that o asks for.
func (f *fleet) start(ctx context.Context, o options) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	startSelf := func(name string, args ...string) (*process.Process, string, error) {
		args = append([]string{peerCommand, "--cert", f.certs.certFile(), "--key", f.certs.keyFile()}, args...)
		p, err := process.Start(name, exec.Command(self, args...))
		if err != nil {
			return nil, "", err
		}
		line, err := p.Await(ctx, `(?m)^`+listeningPrefix+`(.*)\n`)
		if err != nil {
			p.Stop()
			return nil, "", err
		}
		return p, line[1], nil
	}

	p, upstream, err := startSelf(peerDirect, "--slow-handlers", strconv.Itoa(o.handlers))
	if err != nil {
		return err
	}
	if err := f.add(ctx, &peer{name: peerDirect, address: upstream, process: p}); err != nil {
		return err
	}
	if slices.Contains(o.peers, peerReverseProxy) {
		p, address, err := startSelf(peerReverseProxy, "--upstream", "https://"+upstream, "--ca", f.certs.caFile)
		if err != nil {
			return err
		}
		if err := f.add(ctx, &peer{name: peerReverseProxy, address: address, process: p}); err != nil {
			return err
		}
	}
	if slices.Contains(o.peers, peerNginx) {
		if path := findNginx(); path == "" {
			_, _ = fmt.Fprintln(f.stderr, "nginx is not installed: skipped (apt-get install nginx-light)")
		} else {
			p, address, err := startNginx(ctx, path, f.dir, upstream, f.certs)
			if err != nil {
				return err
			}
			if err := f.add(ctx, &peer{name: peerNginx, address: address, process: p}); err != nil {
				return err
			}
		}
	}
	for _, g := range []struct{ name, binary string }{{peerBaseline, o.baseline}, {peerGateway, o.hookgate}} {
		if g.binary == "" || !slices.Contains(o.peers, peerGateway) {
			continue
		}
		binary, err := filepath.Abs(g.binary)
		if err != nil {
			return err
		}
		p, address, err := startGateway(ctx, g.name, binary, f.dir, upstream, f.certs, o.inFlight)
		if err != nil {
			return err
		}
		err = f.add(ctx, &peer{name: g.name, address: address, suffix: "." + extensionName, process: p})
		if err != nil {
			return err
		}
	}
	return nil
}

// add adds a started peer and waits until it answers.
func (f *fleet) add(ctx context.Context, p *peer) error {
	f.peers = append(f.peers, p)
	if err := awaitPeer(ctx, p, payloads()[0], f.certs.caPEM); err != nil {
		return err
	}
	_, err := fmt.Fprintf(f.stderr, "%s: processes %v, idle at %s\n", p.name, p.pids, formatBytes(p.idle))
	return err
}

func (f *fleet) peer(name string) *peer {
	if i := slices.IndexFunc(f.peers, func(p *peer) bool { return p.name == name }); i >= 0 {
		return f.peers[i]
	}
	return nil
}

// stop ends all peers, the extension last: no peer should log a lost upstream.
func (f *fleet) stop() {
	for _, p := range slices.Backward(f.peers) {
		p.process.Stop()
	}
}
