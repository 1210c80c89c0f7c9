// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/process"
)

// patience bounds each wait.
const patience = 5 * time.Minute

// fixture is an API server, an extension, and what a gateway needs to use them.
type fixture struct {
	o          options
	dir        string
	config     *rest.Config
	client     client.Client
	kubeconfig string
	pair       *devcert.Pair
	extension  *httptest.Server
	caller     *http.Client
}

// measure starts an API server with n ExtensionConfigs, and a gateway twice.
func measure(ctx context.Context, o options, dir string, n int) (r row, err error) {
	w, stop, err := start(o, dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := w.fill(ctx, n); err != nil {
		return r, err
	}

	r.configs = n
	began := time.Now()
	g, err := w.startGateway(ctx)
	if err != nil {
		return r, err
	}
	r.ready, r.discovered, err = g.await(ctx, began, n*o.handlers)
	if err == nil {
		r.written, err = w.awaitStatus(ctx, began, n)
	}
	g.Stop()
	if err != nil {
		return r, err
	}

	began = time.Now()
	if g, err = w.startGateway(ctx); err != nil {
		return r, err
	}
	defer g.Stop()
	pids, err := g.PIDs()
	if err != nil {
		return r, err
	}
	peak := process.WatchMemory(pids)
	if _, r.restart, err = g.await(ctx, began, n*o.handlers); err != nil {
		return r, err
	}
	if err := g.awaitDiscoveries(ctx, began, n); err != nil { // a leader looks at everything once
		return r, err
	}
	for i := range o.changes {
		took, err := w.change(ctx, g, i*n/o.changes, strconv.Itoa(i))
		if err != nil {
			return r, err
		}
		r.changes = append(r.changes, took)
	}
	slices.Sort(r.changes)
	time.Sleep(15 * time.Second) // what was read at the start is given back at rest, which is what counts here
	if r.resident, err = process.Resident(pids); err != nil {
		return r, err
	}
	r.peak = peak()
	return r, nil
}

// start starts an API server and an extension, until stop is called.
func start(o options, dir string) (w *fixture, stop func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	w = &fixture{o: o, dir: dir}
	if w.pair, err = devcert.New(time.Now().Add(time.Hour)); err != nil {
		return nil, nil, err
	}
	if err := w.pair.WriteDir(filepath.Join(dir, "certs")); err != nil {
		return nil, nil, err
	}
	w.caller = &http.Client{
		Transport: &http.Transport{TLSClientConfig: w.pair.ClientTLS(), MaxIdleConnsPerHost: callers}, Timeout: 30 * time.Second,
	}
	if err := w.startExtension(); err != nil {
		return nil, nil, err
	}
	stopCluster, err := w.startCluster()
	if err != nil {
		w.extension.Close()
		return nil, nil, err
	}
	return w, func() error {
		w.caller.CloseIdleConnections()
		w.extension.Close()
		return stopCluster()
	}, nil
}

// startExtension starts one server that is all extensions: each has its own path. Its handlers say what the settings of
// the request are.
func (w *fixture) startExtension() error {
	list := &runtimehooksv1.DiscoveryResponse{}
	list.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("DiscoveryResponse"))
	list.Status = runtimehooksv1.ResponseStatusSuccess
	for i := range w.o.handlers {
		list.Handlers = append(list.Handlers, runtimehooksv1.ExtensionHandler{
			Name: "h" + strconv.Itoa(i), RequestHook: runtimehooksv1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(), Hook: "BeforeClusterCreate"},
		})
	}
	discovery, err := json.Marshal(list)
	if err != nil {
		return err
	}
	w.extension = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/discovery") {
			_, _ = rw.Write(discovery)
			return
		}
		var in runtimehooksv1.BeforeClusterCreateRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		out := &runtimehooksv1.BeforeClusterCreateResponse{}
		out.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("BeforeClusterCreateResponse"))
		out.Status, out.Message = runtimehooksv1.ResponseStatusSuccess, "version "+in.Settings["version"]
		_ = json.NewEncoder(rw).Encode(out) // the caller may have left
	}))
	if w.extension.TLS, err = w.pair.ServerTLS(); err != nil {
		return err
	}
	w.extension.TLS.NextProtos = []string{"http/1.1"}
	w.extension.StartTLS()
	return nil
}

func (w *fixture) startCluster() (stop func() error, err error) {
	env := &envtest.Environment{BinaryAssetsDirectory: w.o.assets,
		CRDInstallOptions: envtest.CRDInstallOptions{Paths: []string{w.o.crds}, ErrorIfPathMissing: true,
			MaxTime: process.ServerPatience},
		ControlPlaneStartTimeout: process.ServerPatience, ControlPlaneStopTimeout: process.ServerPatience}
	config, err := env.Start()
	if err != nil {
		return nil, fmt.Errorf("start API server: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, env.Stop())
		}
	}()
	scheme := runtime.NewScheme()
	if err := errors.Join(runtimev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config.QPS = -1
	w.config = config
	if w.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	user, err := env.AddUser(envtest.User{Name: "gateway", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return nil, err
	}
	text, err := user.KubeConfig()
	if err != nil {
		return nil, err
	}
	w.kubeconfig = filepath.Join(w.dir, "kubeconfig")
	return env.Stop, os.WriteFile(w.kubeconfig, text, 0o600)
}

func name(i int) string { return fmt.Sprintf("e%05d", i) }

// fill creates the ExtensionConfigs, and policies for some of their handlers.
func (w *fixture) fill(ctx context.Context, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			c := &runtimev1.ExtensionConfig{}
			c.Name = name(i)
			c.Spec.Settings = map[string]string{"version": "none"}
			c.Spec.ClientConfig = runtimev1.ClientConfig{URL: w.extension.URL + "/" + c.Name, CABundle: w.pair.CAPEM}
			if err := w.client.Create(ctx, c); err != nil {
				return err
			}
			if w.o.policies == 0 || i%w.o.policies != 0 {
				return nil
			}
			p := &v1alpha1.ExtensionPolicy{}
			p.Name = name(i)
			p.Spec.TargetRef = v1alpha1.TargetReference{Name: c.Name, Handler: "h0"}
			p.Spec.TimeoutSeconds = new(int32(5))
			return w.client.Create(ctx, p)
		})
	}
	return group.Wait()
}

// gateway is a running gateway under measurement.
type gateway struct{ *process.Gateway }

func (w *fixture) startGateway(ctx context.Context, flags ...string) (*gateway, error) {
	args := slices.Concat([]string{"serve", "--kubeconfig", w.kubeconfig, "--cert-dir", filepath.Join(w.dir, "certs"),
		"--resync", "1h"}, flags, process.AnyPorts())
	g, err := process.StartGateway(ctx, "gateway", exec.Command(w.o.hookgate, args...))
	return &gateway{g}, err
}

// awaitStatus returns how long it took until the status of n ExtensionConfigs was written.
func (w *fixture) awaitStatus(ctx context.Context, began time.Time, n int) (time.Duration, error) {
	for {
		var list runtimev1.ExtensionConfigList
		if err := w.client.List(ctx, &list); err != nil {
			return 0, err
		}
		written := 0
		for i := range list.Items {
			if len(list.Items[i].Status.Handlers) == w.o.handlers {
				written++
			}
		}
		if written == n {
			return time.Since(began), nil
		}
		if time.Since(began) > patience {
			return 0, fmt.Errorf("%d of %d have a status after %s", written, n, patience)
		}
		time.Sleep(500 * time.Millisecond) // a list of thousands is work, too
	}
}

var (
	registered = regexp.MustCompile(`(?m)^hookgate_registered_handlers(?:\{[^}]*\})? (\S+)$`)
	discovered = regexp.MustCompile(`(?m)^hookgate_discoveries_total(?:\{[^}]*\})? (\S+)$`)
)

// sum returns the sum of a metric over its labels.
func (g *gateway) sum(ctx context.Context, metric *regexp.Regexp) (int, error) {
	_, body, err := get(ctx, "http://"+g.Diagnostics+"/metrics")
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, m := range metric.FindAllSubmatch(body, -1) {
		n, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return 0, err
		}
		sum += int(n)
	}
	return sum, nil
}

// awaitDiscoveries waits until that many were made.
func (g *gateway) awaitDiscoveries(ctx context.Context, began time.Time, n int) error {
	for {
		made, err := g.sum(ctx, discovered)
		if err != nil {
			return err
		}
		if made >= n {
			return nil
		}
		if err := pause(ctx, began); err != nil {
			return fmt.Errorf("%w: %d of %d discoveries", err, made, n)
		}
	}
}

// await returns how long it took to be ready, and to serve that many handlers.
func (g *gateway) await(ctx context.Context, began time.Time, handlers int) (ready, all time.Duration, err error) {
	for {
		if ready == 0 {
			if g.Ready(ctx) == http.StatusOK {
				ready = time.Since(began)
			}
		}
		served, err := g.sum(ctx, registered)
		if err != nil {
			return 0, 0, err
		}
		if ready != 0 && served == handlers {
			return ready, time.Since(began), nil
		}
		if err := pause(ctx, began); err != nil {
			return 0, 0, fmt.Errorf("%w: ready after %s, %d of %d handlers:%s", err, ready, served, handlers,
				g.LogTail())
		}
	}
}

// change writes other settings into one ExtensionConfig, and returns how long it took until a call was made with them.
func (w *fixture) change(ctx context.Context, g *gateway, i int, version string) (time.Duration, error) {
	config := &runtimev1.ExtensionConfig{}
	if err := w.client.Get(ctx, client.ObjectKey{Name: name(i)}, config); err != nil {
		return 0, err
	}
	before := config.DeepCopy()
	config.Spec.Settings["version"] = version
	began := time.Now()
	if err := w.client.Patch(ctx, config, client.MergeFrom(before)); err != nil {
		return 0, err
	}
	for {
		message, err := w.call(ctx, g, "h1."+name(i))
		if err != nil {
			return 0, err
		}
		if message == "version "+version {
			return time.Since(began), nil
		}
		if err := pause(ctx, began); err != nil {
			return 0, err
		}
	}
}

func (w *fixture) call(ctx context.Context, g *gateway, handler string) (string, error) {
	const request = `{"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","namespace":"default"}}}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"https://"+g.HTTPS+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/"+handler, bytes.NewReader([]byte(request)))
	if err != nil {
		return "", err
	}
	resp, err := w.caller.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var out runtimehooksv1.BeforeClusterCreateResponse
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("call %s: %s: %s (%w)", handler, resp.Status, out.Message, err)
	}
	return out.Message, nil
}

// pause waits a moment, and fails when there was enough of that.
func pause(ctx context.Context, began time.Time) error {
	if time.Since(began) > patience {
		return fmt.Errorf("not so after %s", patience)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(5 * time.Millisecond):
		return nil
	}
}

func get(ctx context.Context, url string) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}
