// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// updater is an extension that upgrades Machines of MachineDeployments in place, by asking the fake cloud to do it. It
// is safe for concurrent use.
type updater struct {
	w     *fixture
	cloud string

	mu      sync.Mutex
	updates map[string]int // calls of UpdateMachine by Machine and version
}

// startUpdater starts the extension, and registers it with the gateway.
func (w *fixture) startUpdater(cloud string) *updater {
	w.t.Helper()
	u := &updater{w: w, cloud: cloud, updates: map[string]int{}}
	w.registerExtension("updater", w.serve(
		handler{"version", "CanUpdateMachineSet", answering(w, u.canUpdateMachineSet)},
		handler{"update", "UpdateMachine", answering(w, u.updateMachine)},
	), nil)
	return u
}

// handler is a handler of an extension that runs in the suite itself.
type handler struct {
	name, hook string
	serve      http.HandlerFunc
}

// serve serves an extension, and returns its port.
func (w *fixture) serve(handlers ...handler) int {
	w.t.Helper()
	const group = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+group+"discovery", answering(w, func(_ *runtimehooksv1.DiscoveryRequest, a *runtimehooksv1.DiscoveryResponse) error {
		for _, h := range handlers {
			a.Handlers = append(a.Handlers, runtimehooksv1.ExtensionHandler{
				Name: h.name, RequestHook: runtimehooksv1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(), Hook: h.hook},
			})
		}
		a.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("DiscoveryResponse"))
		a.Status = runtimehooksv1.ResponseStatusSuccess
		return nil
	}))
	for _, h := range handlers {
		mux.HandleFunc("POST "+group+strings.ToLower(h.hook)+"/"+h.name, h.serve)
	}
	return w.serveTLS(mux)
}

// serveTLS serves a handler until the test ends, and returns its port.
func (w *fixture) serveTLS(h http.Handler) int {
	w.t.Helper()
	certificate, err := tls.LoadX509KeyPair(filepath.Join(w.certs, "tls.crt"), filepath.Join(w.certs, "tls.key"))
	if err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	w.t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port
}

// answering serves a hook.
func answering[Request, Response any](w *fixture, hook func(*Request, *Response) error) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		request, response := new(Request), new(Response)
		err := json.NewDecoder(r.Body).Decode(request)
		if err == nil {
			err = hook(request, response)
		}
		if err != nil {
			w.t.Errorf("extension: %s: %v", r.URL.Path, err)
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(response) // the gateway says so if the answer does not arrive
	}
}

// canUpdateMachineSet says that the version can be updated in place, and nothing else.
func (u *updater) canUpdateMachineSet(
	r *runtimehooksv1.CanUpdateMachineSetRequest, a *runtimehooksv1.CanUpdateMachineSetResponse,
) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"version": r.Desired.MachineSet.Spec.Template.Spec.Version,
	}}}})
	a.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("CanUpdateMachineSetResponse"))
	a.Status = runtimehooksv1.ResponseStatusSuccess
	a.MachineSetPatch = runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONMergePatchType, Patch: patch}
	return err
}

// updateMachine begins at the first call, and is done at the second.
func (u *updater) updateMachine(r *runtimehooksv1.UpdateMachineRequest, a *runtimehooksv1.UpdateMachineResponse) error {
	a.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("UpdateMachineResponse"))
	a.Status = runtimehooksv1.ResponseStatusSuccess
	m := r.Desired.Machine
	if u.count(m.Name+" "+m.Spec.Version) == 1 {
		a.RetryAfterSeconds = 1
		return nil
	}
	change, err := json.Marshal(map[string]string{"version": m.Spec.Version})
	if err != nil {
		return err
	}
	url := u.cloud + "/machines/" + strings.TrimPrefix(m.Spec.ProviderID, "fake:///")
	request, err := http.NewRequest(http.MethodPatch, url, bytes.NewReader(change))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the cloud answers %s", response.Status)
	}
	return nil
}

func (u *updater) count(update string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.updates[update]++
	return u.updates[update]
}

// updated returns how many updates there were.
func (u *updater) updated() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.updates)
}
