// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/hookgate/hookgate/test/bench/report"
	"github.com/hookgate/hookgate/test/process"
)

// The peers, in the order of their turns.
const (
	peerDirect       = report.Direct
	peerReverseProxy = "ReverseProxy"
	peerNginx        = "nginx"
	peerEnvoy        = "Envoy"
	peerBaseline     = "baseline"
	peerGateway      = report.Gateway
)

// grpcExtension is the null extension over gRPC, behind the gateway and Envoy's transcoder.
const grpcExtension = "null extension over gRPC"

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
	// profiler is the URL before profilePath, empty for a peer without one.
	profiler string
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
	l := loadOf(cell{payload: pl, callers: 1, protocol: http1Protocol}, p, caPEM)
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
	dir      string
	certs    certificates
	profiles string // directory; empty for none
	stderr   io.Writer
	// peers are in front of the null extension, and rest2grpc in front of grpcExtension.
	peers, rest2grpc []*peer
	processes        []*process.Process
}

// start starts the null extension and the other peers that o asks for.
func (f *fleet) start(ctx context.Context, o options) error {
	upstream, err := f.startSelf(ctx, &f.peers, peerDirect)
	if err != nil {
		return err
	}
	if slices.Contains(o.peers, peerReverseProxy) {
		if _, err := f.startSelf(ctx, &f.peers, peerReverseProxy, "--upstream", "https://"+upstream, "--ca", f.certs.caFile); err != nil {
			return err
		}
	}
	if slices.Contains(o.peers, peerNginx) {
		if err := f.startNginx(ctx, o.nginx, upstream); err != nil {
			return err
		}
	}
	if slices.Contains(o.peers, peerEnvoy) {
		if err := f.startEnvoy(ctx, &f.peers, o.envoy, upstream, nil); err != nil {
			return err
		}
	}
	for _, g := range []struct{ name, binary string }{{peerBaseline, o.baseline}, {peerGateway, o.hookgate}} {
		if g.binary == "" || !slices.Contains(o.peers, peerGateway) {
			continue
		}
		if err := f.startGateway(ctx, &f.peers, gatewaySpec{
			name: g.name, binary: g.binary, extensions: map[string]string{extensionName: "https://" + upstream},
			policies: true, inFlight: o.inFlight,
		}); err != nil {
			return err
		}
	}
	if o.part(partGRPC) && f.peer(peerGateway) != nil {
		return f.startREST2GRPC(ctx, o)
	}
	return nil
}

// startREST2GRPC starts the null extension over gRPC with a gateway and, if there is an Envoy, a transcoder before it.
func (f *fleet) startREST2GRPC(ctx context.Context, o options) error {
	upstream, err := f.startSelf(ctx, nil, grpcExtension, "--grpc")
	if err != nil {
		return err
	}
	if slices.Contains(o.peers, peerEnvoy) {
		filter, err := transcoder()
		if err != nil {
			return err
		}
		if err := f.startEnvoy(ctx, &f.rest2grpc, o.envoy, upstream, filter); err != nil {
			return err
		}
	}
	return f.startGateway(ctx, &f.rest2grpc, gatewaySpec{
		name: peerGateway, binary: o.hookgate, extensions: map[string]string{extensionName: "grpcs://" + upstream},
	})
}

// startSelf starts this program as a peer, adds it to peers unless that is nil, and returns its address.
func (f *fleet) startSelf(ctx context.Context, peers *[]*peer, name string, args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	args = append([]string{peerCommand, "--cert", f.certs.certFile(), "--key", f.certs.keyFile()}, args...)
	p, err := process.Start(name, exec.Command(self, args...))
	if err != nil {
		return "", err
	}
	f.processes = append(f.processes, p)
	line, err := p.Await(ctx, `(?m)^`+listeningPrefix+`(.*)\n`)
	if err != nil {
		return "", err
	}
	if peers == nil {
		return line[1], nil
	}
	started := &peer{name: name, address: line[1], process: p}
	if name == peerReverseProxy {
		started.profiler = "https://" + started.address
	}
	return started.address, f.add(ctx, peers, started)
}

func (f *fleet) startNginx(ctx context.Context, given, upstream string) error {
	path, err := findProgram(given, "nginx", "/usr/sbin/nginx", proxiesDir+"/nginx/sbin/nginx")
	if err != nil {
		return err
	}
	if path == "" {
		return f.skip(peerNginx, "apt-get install nginx-light, `make "+proxiesDir+"/envoy`, or --nginx")
	}
	p, address, err := startNginx(ctx, path, f.dir, upstream, f.certs)
	if err != nil {
		return err
	}
	f.processes = append(f.processes, p)
	return f.add(ctx, &f.peers, &peer{name: peerNginx, address: address, process: p})
}

// startEnvoy starts Envoy, with a transcoder unless that is nil.
func (f *fleet) startEnvoy(ctx context.Context, peers *[]*peer, given, upstream string, transcoder object) error {
	path, err := findProgram(given, proxiesDir+"/envoy", "envoy")
	if err != nil {
		return err
	}
	name := peerEnvoy
	if transcoder != nil {
		name += "'s transcoder"
	}
	if path == "" {
		return f.skip(name, "`make "+proxiesDir+"/envoy`, or --envoy")
	}
	p, address, err := startEnvoy(ctx, name, path, f.dir, upstream, f.certs, transcoder)
	if err != nil {
		return err
	}
	f.processes = append(f.processes, p)
	return f.add(ctx, peers, &peer{name: peerEnvoy, address: address, process: p})
}

func (f *fleet) startGateway(ctx context.Context, peers *[]*peer, spec gatewaySpec) error {
	dir, err := os.MkdirTemp(f.dir, "gateway-") // two have the same name
	if err != nil {
		return err
	}
	started := &peer{name: spec.name, suffix: "." + extensionName}
	if f.profiles != "" {
		if spec.profiler, err = freeAddress(); err != nil {
			return err
		}
		started.profiler = "http://" + spec.profiler
	}
	started.process, started.address, err = startGateway(ctx, spec, dir, f.certs)
	if err != nil {
		return err
	}
	f.processes = append(f.processes, started.process)
	return f.add(ctx, peers, started)
}

func (f *fleet) skip(name, how string) error {
	_, err := fmt.Fprintf(f.stderr, "%s is not installed: skipped (%s)\n", name, how)
	return err
}

// add adds a started peer and waits until it answers.
func (f *fleet) add(ctx context.Context, peers *[]*peer, p *peer) error {
	*peers = append(*peers, p)
	small, err := newPayload("S")
	if err != nil {
		return err
	}
	if err := awaitPeer(ctx, p, small, f.certs.caPEM); err != nil {
		return err
	}
	_, err = fmt.Fprintf(f.stderr, "%s: processes %v, idle at %s\n", p.name, p.pids, report.Bytes(p.idle))
	return err
}

func (f *fleet) peer(name string) *peer {
	if i := slices.IndexFunc(f.peers, func(p *peer) bool { return p.name == name }); i >= 0 {
		return f.peers[i]
	}
	return nil
}

// stop ends all peers, the extensions last: no peer should log a lost upstream.
func (f *fleet) stop() {
	for _, p := range slices.Backward(f.processes) {
		p.Stop()
	}
}
