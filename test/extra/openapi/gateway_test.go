// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/gen/openapi"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// gateway is a running `hookgate serve`.
type gateway struct {
	url         string
	diagnostics string // http://HOST:PORT
	pair        *devcert.Pair
	client      *http.Client
}

// startGateway runs a gateway for the extensions at the URLs, by name, and waits until it is ready. All of them have
// the certificates of one authority.
func startGateway(t *testing.T, pair *devcert.Pair, extensions map[string]string, flags ...string) *gateway {
	t.Helper()
	return startProgram(t, process.Program(t, "HOOKGATE_BIN"), pair, extensions, flags...)
}

// startProgram is startGateway with a program that has groups of its own.
func startProgram(
	t *testing.T, binary string, pair *devcert.Pair, extensions map[string]string, flags ...string,
) *gateway {
	t.Helper()
	certs, configs := t.TempDir(), t.TempDir()
	if err := pair.WriteDir(certs); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(certs, "ca.crt")); err != nil && !os.IsNotExist(err) { // callers need no certificate
		t.Fatal(err)
	}
	for name, url := range extensions {
		manifest := fmt.Sprintf("apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata:\n  name: %s\nspec:\n"+
			"  clientConfig:\n    url: %s\n    caBundle: %s\n", name, url, base64.StdEncoding.EncodeToString(pair.CAPEM))
		if err := os.WriteFile(filepath.Join(configs, name+".yaml"), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	running := process.RunGateway(t, exec.Command(binary,
		append([]string{"serve", "--extension-configs", configs, "--cert-dir", certs,
			"--http-address=127.0.0.1:0", "--grpc-address=", "--diagnostics-address=127.0.0.1:0"}, flags...)...))
	g := &gateway{url: "https://" + running.HTTPS, diagnostics: "http://" + running.Diagnostics, pair: pair, client: &http.Client{
		Timeout: process.Patience, Transport: &http.Transport{TLSClientConfig: pair.ClientTLS(),
			DisableCompression: true},
	}}
	t.Cleanup(g.client.CloseIdleConnections)
	running.WaitReady(t)
	for name := range extensions { // it is ready once it has tried them
		running.Expect(t, "extension discovered.*extensionConfig="+name+`\b`)
	}
	return g
}

// answer is what came back, and from where after redirects.
type answer struct {
	status int
	header http.Header
	body   []byte
	path   string
}

// do sends a request to the gateway.
func (g *gateway) do(t *testing.T, method, path string, header http.Header, body []byte) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, g.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := g.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, read, response.Request.URL.Path}
}

func (g *gateway) get(t *testing.T, path string, header http.Header) answer {
	t.Helper()
	return g.do(t, http.MethodGet, path, header, nil)
}

// post calls a hook.
func (g *gateway) post(t *testing.T, path string, body []byte) (int, []byte) {
	t.Helper()
	a := g.do(t, http.MethodPost, path, nil, body)
	return a.status, a.body
}

// startExtension serves BeforeClusterCreate, whose answer names the Cluster, and what more adds, and returns its URL.
func startExtension(t *testing.T, pair *devcert.Pair, more ...func(*http.ServeMux)) string {
	t.Helper()
	url, _ := startStoppableExtension(t, pair, more...)
	return url
}

// startStoppableExtension is startExtension with a function that ends the extension and its connections at once.
// Clusters whose names begin with "wait" are asked to come back.
func startStoppableExtension(
	t *testing.T, pair *devcert.Pair, more ...func(*http.ServeMux),
) (url string, stop func()) {
	t.Helper()
	config := certificates.Server(t, pair)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, kind string, members map[string]any) {
		members["apiVersion"], members["kind"], members["status"] = hook.APIVersion, kind, "Success"
		_ = json.NewEncoder(w).Encode(members)
	}
	mux.HandleFunc("POST /"+hook.APIVersion+"/discovery", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "DiscoveryResponse", map[string]any{"handlers": []any{map[string]any{
			"name": "approval", "requestHook": map[string]any{"apiVersion": hook.APIVersion, "hook": "BeforeClusterCreate"},
		}}})
	})
	mux.HandleFunc("POST /"+hook.APIVersion+"/beforeclustercreate/approval", func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Cluster struct {
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			} `json:"cluster"`
		}
		_ = json.NewDecoder(r.Body).Decode(&request)
		members := map[string]any{
			"message": "Cluster " + request.Cluster.Metadata.Name + " may be created", "retryAfterSeconds": 0,
		}
		if strings.HasPrefix(request.Cluster.Metadata.Name, "wait") {
			members["message"], members["retryAfterSeconds"] = "the budget of the team is not approved", 30
		}
		answer(w, "BeforeClusterCreateResponse", members)
	})
	for _, add := range more {
		add(mux)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux, TLSConfig: config, ReadHeaderTimeout: process.Patience}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Shutdown(context.Background()) })
	return "https://" + listener.Addr().String(), func() { _ = server.Close() }
}

// serveInfrastructure adds a handler of each hook of infrastructure, with the name of the hook in lower case, whose
// answers are the samples.
func serveInfrastructure(mux *http.ServeMux) {
	const apiVersion = hook.InfrastructureGroup + "/" + hook.InfrastructureVersion
	var handlers []any
	for _, name := range samples.InfrastructureHooks() {
		lower := strings.ToLower(name)
		handlers = append(handlers, map[string]any{
			"name": lower, "requestHook": map[string]any{"apiVersion": apiVersion, "hook": name},
		})
		mux.HandleFunc("POST /"+apiVersion+"/"+lower+"/"+lower, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(samples.InfrastructureResponse(name))
		})
	}
	discover := func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": apiVersion, "kind": "DiscoverInfrastructureResponse", "status": "Success",
			"handlers": handlers, "providerIdPrefix": "acme://",
			"machineParameters": map[string]any{"type": "object"},
		})
	}
	mux.HandleFunc("POST /"+apiVersion+"/discoverinfrastructure", discover)
	mux.HandleFunc("POST /"+apiVersion+"/discoverinfrastructure/{handler}", discover)
}

func TestGatewayServesTheDocuments(t *testing.T) {
	g := startGateway(t, certificates.New(t), nil)
	for folder, document := range map[string]string{
		"/openapi": openapi.Document, "/openapi/" + hook.InfrastructureGroup: openapi.Infrastructure,
	} {
		path := folder + "/hooks.json"
		first := g.get(t, path, nil)
		if first.status != http.StatusOK || string(first.body) != document {
			t.Fatalf("GET %s: status %d with %d bytes, want the document's %d", path, first.status, len(first.body),
				len(document))
		}
		again := g.get(t, path, http.Header{"If-None-Match": {first.header.Get("ETag")}})
		if again.status != http.StatusNotModified || len(again.body) > 0 {
			t.Errorf("GET %s again: status %d with %d bytes", path, again.status, len(again.body))
		}
		small := g.get(t, path, http.Header{"Accept-Encoding": {"gzip"}})
		if small.header.Get("Content-Encoding") != "gzip" || len(small.body) > len(document)/4 {
			t.Errorf("GET %s with gzip: %q, %d bytes", path, small.header.Get("Content-Encoding"), len(small.body))
		}
		if page := g.get(t, folder, nil); page.status != http.StatusOK || page.path != folder+"/" {
			t.Errorf("GET %s: status %d from %s", folder, page.status, page.path)
		}
	}
}

func TestGatewayWithoutTheDocument(t *testing.T) {
	g := startGateway(t, certificates.New(t), nil, "--openapi=false")
	for _, path := range []string{"/openapi/hooks.json", "/openapi/", "/openapi/infrastructure.hookgate.dev/hooks.json"} {
		if a := g.get(t, path, nil); a.status != http.StatusNotFound {
			t.Errorf("GET %s: status %d, want 404", path, a.status)
		}
	}
	if code, body := g.post(t, "/"+hook.APIVersion+"/discovery", []byte("{}")); code != http.StatusOK {
		t.Errorf("discovery: status %d, %s", code, body)
	}
}

// TestGatewayAnswersAsTheDocumentsSay sends the example of every hook, and what is wrong in every way, and holds the
// answers against the document.
func TestGatewayAnswersAsTheDocumentsSay(t *testing.T) {
	pair := certificates.New(t)
	g := startGateway(t, pair, map[string]string{"acme": startExtension(t, pair, serveInfrastructure)})
	for _, of := range groups(t) {
		answered := map[int]int{}
		for path, item := range of.document.Paths.Map() {
			answered[g.answers(t, path, item.Post)]++
		}
		want := map[int]int{http.StatusOK: 14} // every hook of infrastructure has a handler
		switch of.name {
		case hook.MachinesGroup: // which has none: the discovery, and the six lifecycle hooks of no handler
			want = map[int]int{http.StatusOK: 7, http.StatusNotFound: 9}
		case hook.Group:
			// Discovery, and the nine lifecycle hooks: of no handler, where one is enough, and of one that there is.
			want = map[int]int{http.StatusOK: 11, http.StatusNotFound: 22}
		}
		if diff := cmp.Diff(want, answered); diff != "" {
			t.Errorf("%s: status codes, and how often they came (-want +got):\n%s", of.name, diff)
		}
	}
}

// answers sends the example of an operation, which may have no handler, and requests that are wrong. It holds the
// answers against the document, and returns the status of the first.
func (g *gateway) answers(t *testing.T, path string, operation *openapi3.Operation) int {
	t.Helper()
	example, err := json.Marshal(operation.RequestBody.Value.Content["application/json"].Example)
	if err != nil {
		t.Fatal(err)
	}
	path = strings.ReplaceAll(path, "{name}", handlerOf(path))
	first := g.do(t, http.MethodPost, path+"?timeout=10s", nil, example)
	if first.status != http.StatusOK && first.header.Get("Hookgate-Error-Kind") != "UnknownHandler" {
		t.Errorf("POST %s with the example: status %d: %s", path, first.status, first.body)
	}
	hold(t, first, operation)
	for name, c := range map[string]struct {
		method, query, body string
		want                int
	}{
		"no JSON":        {http.MethodPost, "", `{"settings": `, http.StatusBadRequest},
		"a wrong type":   {http.MethodPost, "", `{"settings": "none"}`, http.StatusBadRequest},
		"a wrong kind":   {http.MethodPost, "", `{"kind": "Cluster"}`, http.StatusBadRequest},
		"a wrong time":   {http.MethodPost, "?timeout=banana", string(example), http.StatusBadRequest},
		"a wrong method": {http.MethodPut, "", string(example), http.StatusMethodNotAllowed},
	} {
		if name == "a wrong type" && strings.HasSuffix(path, "/discovery") {
			continue // which has no settings
		}
		a := g.do(t, c.method, path+c.query, nil, []byte(c.body))
		if a.status != c.want {
			t.Errorf("%s %s with %s: status %d, want %d", c.method, path, name, a.status, c.want)
		}
		hold(t, a, operation)
	}
	return first.status
}

// handlerOf returns what startExtension has for a path that ends with a name.
func handlerOf(path string) string {
	switch hook := strings.Split(path, "/")[3]; {
	case !strings.Contains(path, "infrastructure"):
		return "approval.acme"
	case hook == "discoverinfrastructure":
		return "acme"
	default:
		return hook + ".acme"
	}
}

// hold compares an answer with what the document says about those of its status.
func hold(t *testing.T, a answer, operation *openapi3.Operation) {
	t.Helper()
	described := operation.Responses.Status(a.status)
	if described == nil {
		described = operation.Responses.Default()
	}
	if err := described.Value.Content["application/json"].Schema.Value.VisitJSON(decode(t, a.body)); err != nil {
		t.Errorf("%s: status %d: %v\n%s", operation.OperationID, a.status, err, a.body)
	}
	for name, header := range described.Value.Headers {
		text := a.header.Get(name)
		if text == "" {
			if header.Value.Required {
				t.Errorf("%s: status %d: no header %s", operation.OperationID, a.status, name)
			}
			continue
		}
		var value any = text
		if header.Value.Schema.Value.Type.Is("integer") {
			value = decode(t, []byte(text))
		}
		if err := header.Value.Schema.Value.VisitJSON(value); err != nil {
			t.Errorf("%s: status %d: header %s: %q, %v", operation.OperationID, a.status, name, text, err)
		}
	}
}

// TestGatewayShowsTheDocumentToWhomItAnswers starts a gateway that wants certificates of its callers.
func TestGatewayShowsTheDocumentToWhomItAnswers(t *testing.T) {
	pair := certificates.New(t)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pair.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := process.Program(t, "HOOKGATE_BIN")
	certs := t.TempDir()
	if err := pair.WriteDir(certs); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(certs, "ca.crt"), pair.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	g := process.RunGateway(t, exec.Command(binary, "serve", "--extension-configs", t.TempDir(), "--cert-dir", certs,
		"--http-address=127.0.0.1:0", "--grpc-address=", "--diagnostics-address=127.0.0.1:0"))
	for _, path := range []string{"/openapi/hooks.json", "/openapi/"} {
		stranger := &http.Client{Timeout: process.Patience,
			Transport: &http.Transport{TLSClientConfig: pair.ClientTLS()}}
		if r, err := stranger.Get("https://" + g.HTTPS + path); err == nil {
			_ = r.Body.Close()
			t.Errorf("GET %s without a certificate: status %d, want no connection", path, r.StatusCode)
		}
		certificate := certificates.Of(t, pair)
		config := pair.ClientTLS()
		config.Certificates = []tls.Certificate{certificate}
		known := &http.Client{Timeout: process.Patience, Transport: &http.Transport{TLSClientConfig: config}}
		r, err := known.Get("https://" + g.HTTPS + path)
		if err != nil {
			t.Errorf("GET %s with a certificate: %v", path, err)
			continue
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Errorf("GET %s with a certificate: status %d", path, r.StatusCode)
		}
	}
}
