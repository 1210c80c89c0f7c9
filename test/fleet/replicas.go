// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// goMemoryLimit is what deploy/ sets for a container of 512 MiB, in percent of it.
const goMemoryLimit = 90

// endpointDelay is how long a Service still sends connections to a replica that was asked to end.
const endpointDelay = time.Second

// replica is a gateway in a control group.
type replica struct {
	*process.Gateway
	group *group
	pids  []int
	stop  func() int64 // watching its memory
}

// service is some replicas behind one address, as a Service of Kubernetes is: it chooses one for each new connection,
// one after the other.
type service struct {
	w       *world
	configs string // directory
	number  int    // of replicas that were started

	mu    sync.Mutex
	ready []*replica
	next  int
	most  int64 // memory that a replica had that has ended
}

// start starts the replicas.
func (w *world) start(ctx context.Context, replicas int, cache bool) (*service, error) {
	s := &service{w: w, configs: filepath.Join(w.dir, fmt.Sprintf("cache-%t", cache))}
	if err := w.writeConfigs(s.configs, cache); err != nil {
		return nil, err
	}
	for range replicas {
		r, err := s.launch(ctx)
		if err != nil {
			return nil, errors.Join(err, s.stop())
		}
		s.add(r)
	}
	return s, nil
}

func (s *service) add(r *replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, r)
}

// launch starts one more replica and waits until it is ready.
func (s *service) launch(ctx context.Context) (*replica, error) {
	o := s.w.options
	s.number++
	args := append([]string{
		"serve", "--extension-configs", s.configs, "--cert-dir", s.w.certs, "--gateway-id", "fleet",
		"--shutdown-delay", o.shutdownDelay.String(), "--caller-connection-max-age", o.connectionAge.String(),
	}, process.AnyPorts()...)
	r := &replica{}
	if o.replica != (allowance{}) {
		var err error
		if r.group, err = newGroup(o.replica); err != nil {
			return nil, err
		}
	}
	cmd := r.group.command(o.hookgate, args...)
	cmd.Env = os.Environ()
	if most := o.replica.mebibytes; most > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMEMLIMIT=%dMiB", most*goMemoryLimit/100))
	}
	var err error
	if r.Gateway, err = process.StartGateway(ctx, fmt.Sprintf("replica %d", s.number), cmd); err != nil {
		return nil, errors.Join(err, r.group.remove())
	}
	if err = r.AwaitReady(ctx); err == nil {
		r.pids, err = r.PIDs()
	}
	if err != nil {
		r.Stop()
		return nil, errors.Join(err, r.group.remove())
	}
	r.stop = process.WatchMemory(r.pids)
	return r, nil
}

// end asks a replica to end, and returns once it has; the error says how if it did not end well.
func (s *service) end(r *replica) error {
	most := r.stop()
	s.mu.Lock()
	s.most = max(s.most, most)
	s.mu.Unlock()
	var err error
	if terminated := r.Terminate(); terminated != nil {
		err = fmt.Errorf("a replica has ended by itself:%s", r.LogTail())
	} else if status, waited := r.ExitStatus(); waited != nil || status != 0 {
		err = errors.Join(waited, fmt.Errorf("a replica ended with status %d:%s", status, r.LogTail()))
	}
	r.Stop()
	return errors.Join(err, r.group.remove())
}

// stop ends all replicas.
func (s *service) stop() error {
	s.mu.Lock()
	ready := s.ready
	s.ready = nil
	s.mu.Unlock()
	errs := make([]error, len(ready))
	var ending sync.WaitGroup
	for i, r := range ready {
		ending.Go(func() { errs[i] = s.end(r) })
	}
	ending.Wait()
	return errors.Join(errs...)
}

// roll replaces each replica as a Deployment with maxSurge 1 does: another one is ready before it is asked to end.
func (s *service) roll(ctx context.Context) error {
	s.mu.Lock()
	old := append([]*replica(nil), s.ready...)
	s.mu.Unlock()
	for _, r := range old {
		next, err := s.launch(ctx)
		if err != nil {
			return err
		}
		s.add(next)
		removed := time.AfterFunc(endpointDelay, func() { s.remove(r) })
		err = s.end(r)
		removed.Stop()
		s.remove(r)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *service) remove(r *replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.ready {
		if other == r {
			s.ready = append(s.ready[:i:i], s.ready[i+1:]...)
			return
		}
	}
}

// dial connects to the next replica.
func (s *service) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	s.mu.Lock()
	if len(s.ready) == 0 {
		s.mu.Unlock()
		return nil, errors.New("no replica is ready")
	}
	s.next++
	to := s.ready[s.next%len(s.ready)].HTTPS
	s.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, to)
}

// writeConfigs writes the manifests of a gateway.
func (w *world) writeConfigs(dir string, cache bool) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	manifests := map[string]any{"extension": map[string]any{
		"apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
		"metadata": map[string]any{"name": extensionName},
		"spec":     map[string]any{"clientConfig": map[string]any{"url": "https://" + w.extension, "caBundle": w.ca}},
	}}
	if cache {
		manifests["policy"] = map[string]any{
			"apiVersion": "hookgate.dev/v1alpha1", "kind": "ExtensionPolicy", "metadata": map[string]any{"name": extensionName},
			"spec": map[string]any{
				"targetRef": map[string]any{"name": extensionName}, "cache": map[string]any{"ttlSeconds": 3600},
			},
		}
	}
	for name, manifest := range manifests {
		text, err := json.Marshal(manifest) // JSON is YAML
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
