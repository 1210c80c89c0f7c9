// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/extra/conversion/random"
	"github.com/hookgate/hookgate/test/process"
)

// The groups of hooks, with the hook that lists the handlers of each.
const (
	lifecycle      = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
	infrastructure = "infrastructure.hookgate.dev/v1alpha1"
)

var discoveries = map[string]string{lifecycle: "Discovery", infrastructure: "DiscoverInfrastructure"}

// hooks are those that carry an object of a kind, and where.
var hooks = map[string]struct {
	apiVersion string
	hook       string
	path       []string
}{
	"Cluster":     {lifecycle, "BeforeClusterCreate", []string{"cluster"}},
	"Machine":     {lifecycle, "UpdateMachine", []string{"desired", "machine"}},
	"MachineSet":  {lifecycle, "CanUpdateMachineSet", []string{"desired", "machineSet"}},
	"MachinePool": {infrastructure, "ReconcileMachinePool", []string{"subject", "machinePool"}},
}

// Random objects go through a running gateway to a handler of the other version, and what arrived there goes back to
// one of the first: both see what Cluster API's own converters yield.
func TestThroughGateway(t *testing.T) {
	pair := certificates.New(t)
	g := startGateway(t, pair, startExtension(t, pair))
	for _, kind := range random.Kinds {
		for _, d := range [][2]string{{convert.V1Beta2, convert.V1Beta1}, {convert.V1Beta1, convert.V1Beta2}} {
			from, to := d[0], d[1]
			t.Run(fmt.Sprintf("%s from %s", kind, from), func(t *testing.T) {
				t.Parallel()
				generator := random.New(seed(t) + 1)
				for n := range objects {
					object := marshal(t, generator.Object(kind, from))
					there := g.call(t, kind, object, to)
					_, without := upstream(t, object, kind, from, to)
					compare(t, n, "there", object, without, there)
					back := g.call(t, kind, there, from)
					_, backWithout := upstream(t, without, kind, to, from)
					compare(t, n, "back", there, backWithout, back)
					if t.Failed() {
						t.FailNow()
					}
				}
			})
		}
	}
}

// startExtension runs an extension that answers every hook with the object that it was sent, as a member echo. Each
// hook has a handler for each version.
func startExtension(t *testing.T, pair *devcert.Pair) string {
	t.Helper()
	certificate := certificates.Of(t, pair)
	mux := http.NewServeMux()
	write := func(w http.ResponseWriter, apiVersion string, answer map[string]any) {
		answer["apiVersion"], answer["status"] = apiVersion, "Success"
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
	handlers := map[string][]any{}
	for _, h := range hooks {
		for _, version := range []string{convert.V1Beta1, convert.V1Beta2} {
			name := handler(h.hook, version)
			handlers[h.apiVersion] = append(handlers[h.apiVersion],
				map[string]any{"name": name, "requestHook": map[string]any{"apiVersion": h.apiVersion, "hook": h.hook}})
			mux.HandleFunc("POST /"+h.apiVersion+"/"+strings.ToLower(h.hook)+"/"+name,
				func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					for _, name := range h.path {
						var members map[string]json.RawMessage
						if err == nil {
							err = json.Unmarshal(body, &members)
						}
						body = members[name]
					}
					if err != nil {
						http.Error(w, err.Error(), http.StatusInternalServerError)
						return
					}
					answer := map[string]any{"kind": h.hook + "Response", "echo": json.RawMessage(body)}
					if h.apiVersion == infrastructure {
						answer["phase"] = "Ready"
					}
					write(w, h.apiVersion, answer)
				})
		}
	}
	for apiVersion, discovery := range discoveries {
		mux.HandleFunc("POST /"+apiVersion+"/"+strings.ToLower(discovery),
			func(w http.ResponseWriter, _ *http.Request) {
				write(w, apiVersion, map[string]any{"kind": discovery + "Response", "handlers": handlers[apiVersion]})
			})
	}
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// handler returns the name of the handler of a hook that understands a version.
func handler(hook, version string) string { return strings.ToLower(hook) + "-" + version }

// gateway is one that runs.
type gateway struct {
	url    string
	client *http.Client
}

// startGateway runs a gateway for the extension, whose operator says what each handler understands, and which has
// read the CustomResourceDefinitions of what random objects refer to.
func startGateway(t *testing.T, pair *devcert.Pair, extension string) *gateway {
	t.Helper()
	binary := process.Program(t, "HOOKGATE_BIN")
	certs, configs := t.TempDir(), t.TempDir()
	if err := pair.WriteDir(certs); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(certs, "ca.crt")); err != nil &&
		!os.IsNotExist(err) { // callers need no certificate
		t.Fatal(err)
	}
	var manifests strings.Builder
	fmt.Fprintf(&manifests,
		"apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata:\n  name: echo\nspec:\n"+
			"  clientConfig:\n    url: %s\n    caBundle: %s\n", extension, base64.StdEncoding.EncodeToString(pair.CAPEM))
	for _, h := range hooks {
		for _, version := range []string{convert.V1Beta1, convert.V1Beta2} {
			name := handler(h.hook, version)
			fmt.Fprintf(&manifests,
				"---\napiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata:\n  name: %s\nspec:\n"+
					"  targetRef: {name: echo, handler: %s}\n  clusterAPIVersion: %s\n", name, name, version)
		}
	}
	for _, crd := range random.CRDs() {
		labels, err := json.Marshal(crd.Labels)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&manifests, "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: %s\n  labels: %s\n", crd.Name, labels)
	}
	if err := os.WriteFile(filepath.Join(configs, "all.yaml"), []byte(manifests.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	running := process.RunGateway(t, exec.Command(binary, "serve", "--extension-configs", configs, "--cert-dir", certs,
		"--http-address=127.0.0.1:0", "--grpc-address=", "--diagnostics-address=127.0.0.1:0"))
	g := &gateway{url: "https://" + running.HTTPS, client: &http.Client{
		Timeout:   process.Patience,
		Transport: &http.Transport{TLSClientConfig: pair.ClientTLS(), MaxIdleConnsPerHost: 2 * len(hooks)},
	}}
	t.Cleanup(g.client.CloseIdleConnections)
	running.WaitReady(t)
	return g
}

// call sends an object to the handler of a version, and returns it as that handler got it.
func (g *gateway) call(t *testing.T, kind string, object []byte, version string) []byte {
	t.Helper()
	h := hooks[kind]
	request := any(json.RawMessage(object))
	for i := range h.path {
		request = map[string]any{h.path[len(h.path)-1-i]: request}
	}
	if kind == "MachineSet" { // which hooks of it must have twice
		request.(map[string]any)["current"] = request.(map[string]any)["desired"]
	}
	if subject, ok := request.(map[string]any)["subject"]; ok {
		subject.(map[string]any)["externalId"] = "pool"
	}
	sent, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	url := g.url + "/" + h.apiVersion + "/" + strings.ToLower(h.hook) + "/" + handler(h.hook,
		version) + ".echo"
	response, err := g.client.Post(url, "application/json", bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Status string
		Echo   json.RawMessage
	}
	if err := json.Unmarshal(body, &answer); err != nil || response.StatusCode != http.StatusOK ||
		answer.Status != "Success" {
		t.Fatalf("status %d, %v: %s\nobject: %s", response.StatusCode, err, body, object)
	}
	return answer.Echo
}
