// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// asProgram is the variable that makes the test's own binary the program.
const asProgram = "OWN_HOOKS_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// own returns a command of the program.
func own(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// TestLifetimes holds the versions of all groups of the program against the rules of deprecation.
func TestLifetimes(t *testing.T) {
	hooks, _, err := gateway.Hooks(gateway.Infrastructure(), gateway.Machines(), dns())
	if err != nil {
		t.Fatal(err)
	}
	if err := hookversion.CheckLifetimes(hooks, time.Now()); err != nil {
		t.Error(err)
	}
}

// fixture is a gateway with the group, and an extension over each protocol.
type fixture struct {
	gateway *process.Gateway
	grpc    *process.Process
	ca      string
	// The URLs of the extensions.
	stubs, plain string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	certs := certificates.New(t)
	certDir, configDir := filepath.Join(dir, "certs"), filepath.Join(dir, "configs")
	if err := certs.WriteDir(certDir); err != nil {
		t.Fatal(err)
	}
	overGRPC := process.Run(t, "acme-dns", exec.CommandContext(t.Context(), buildExtension(t, dir), "127.0.0.1:0", certDir))
	overREST := httptest.NewUnstartedServer(http.HandlerFunc(answerJSON))
	overREST.TLS = certificates.Server(t, certs)
	overREST.Config.ErrorLog = log.New(io.Discard, "", 0)
	overREST.StartTLS()
	t.Cleanup(overREST.Close)

	if err := os.Mkdir(configDir, 0o750); err != nil {
		t.Fatal(err)
	}
	stubs := "grpcs://" + overGRPC.Expect(t, `listening on (.*)\n`)[1]
	for name, url := range map[string]string{"stubs": stubs, "plain": overREST.URL} {
		manifest := fmt.Sprintf("apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\n"+
			"metadata: {name: %s}\nspec: {clientConfig: {url: %q, caBundle: %s}}\n",
			name, url, base64.StdEncoding.EncodeToString(certs.CAPEM))
		if err := os.WriteFile(filepath.Join(configDir, name+".yaml"), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := process.RunGateway(t, own(t,
		append([]string{"serve", "--extension-configs", configDir, "--cert-dir", certDir}, process.AnyPorts()...)...))
	if err := g.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &fixture{gateway: g, grpc: overGRPC, ca: filepath.Join(certDir, devcert.CAFile), stubs: stubs, plain: overREST.URL}
	process.Eventually(t, "both extensions are known", func() bool {
		handlers, err := own(t, "get", "handlers", "--server", "https://"+g.HTTPS, "--ca", w.ca).Output()
		return err == nil && strings.Contains(string(handlers), "ensure--stubs ") &&
			strings.Contains(string(handlers), "ensure--plain ")
	})
	return w
}

// buildExtension builds acme-dns and returns its path.
func buildExtension(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(dir, "acme-dns")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./acme-dns").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// answerJSON is an extension in plain JSON, without anything that was generated.
func answerJSON(w http.ResponseWriter, r *http.Request) {
	const apiVersion = "dns.acme.example/v1alpha1"
	answer := map[string]any{"apiVersion": apiVersion, "status": "Success"}
	switch r.URL.Path {
	case "/" + apiVersion + "/discoverdns":
		hook := map[string]any{"apiVersion": apiVersion, "hook": "EnsureRecord"}
		answer["kind"] = "DiscoverDNSResponse"
		answer["handlers"] = []any{
			map[string]any{"name": "ensure", "requestHook": hook},
			map[string]any{"name": "slow", "requestHook": hook, "timeoutSeconds": 1},
		}
	case "/" + apiVersion + "/ensurerecord/slow":
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices that the gateway has left
		<-r.Context().Done()
		return
	case "/" + apiVersion + "/ensurerecord/ensure":
		var request struct {
			Name      string
			Addresses []string
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer["kind"], answer["state"] = "EnsureRecordResponse", "Published"
		answer["message"] = fmt.Sprintf("%s is %v", request.Name, request.Addresses)
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // a gateway that has left
}

// call calls a hook through a front, and returns the answer or the error.
func (w *fixture) call(t *testing.T, front, hook string, more ...string) string {
	t.Helper()
	out, err := own(t, append([]string{
		"call", hook, "--server", front, "--ca", w.ca, "-o", "json",
	}, more...)...).CombinedOutput()
	if len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}

// TestCalls calls the hooks over both fronts and both extensions.
func TestCalls(t *testing.T) {
	w := newFixture(t)
	fronts := []string{"https://" + w.gateway.HTTPS, "grpcs://" + w.gateway.GRPC}
	for _, front := range fronts {
		for _, handler := range []string{"ensure.stubs", "ensure.plain"} {
			var answer map[string]any
			out := w.call(t, front, "EnsureRecord", "--handler", handler, "-f", "record.yaml")
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Errorf("%s to %s: %v: %s", front, handler, err, out)
			}
			want := map[string]any{
				"apiVersion": "dns.acme.example/v1alpha1", "kind": "EnsureRecordResponse", "status": "Success",
				"state": "Published", "retryAfterSeconds": 0.0,
				"message": "payments-eu-west-1.clusters.acme.example is [192.0.2.10]",
			}
			if diff := cmp.Diff(want, answer); diff != "" {
				t.Errorf("%s to %s (-want +got):\n%s", front, handler, diff)
			}
		}
		for name, tt := range map[string]struct {
			args []string
			want string
		}{
			"Timeout":   {[]string{"EnsureRecord", "--handler", "slow.plain", "-f", "record.yaml"}, "error kind Timeout"},
			"NoHandler": {[]string{"RemoveRecord", "--handler", "ensure.plain", "-f", "record.yaml"}, "error kind UnknownHandler"},
			"NoHook":    {[]string{"EnsureRecords", "-f", "record.yaml"}, `no hook "EnsureRecords", did you mean EnsureRecord?`},
		} {
			if out := w.call(t, front, tt.args[0], tt.args[1:]...); !strings.Contains(out, tt.want) {
				t.Errorf("%s, %s: want %q in %s", front, name, tt.want, out)
			}
		}
	}

	handlers, err := own(t, "get", "handlers", "--server", fronts[0], "--ca", w.ca).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ensure--plain", "slow--plain", "ensure--stubs", "remove--stubs", "beforeclustercreate"} {
		if !strings.Contains(string(handlers), want+" ") {
			t.Errorf("no %s in\n%s", want, handlers)
		}
	}
	if out := w.call(t, fronts[0], "Discovery"); strings.Contains(out, "acme") {
		t.Errorf("Cluster API would find hooks that it does not know: %s", out)
	}

	// Without the extension, its circuit opens, and the other one is not concerned.
	w.grpc.Kill()
	unreachable := func() bool {
		return strings.Contains(w.call(t, fronts[0], "EnsureRecord", "--handler", "ensure.stubs", "-f", "record.yaml"), "circuit")
	}
	if !slices.ContainsFunc(make([]int, 50), func(int) bool { return unreachable() }) {
		t.Error("the circuit does not open")
	}
	if out := w.call(t, fronts[0], "EnsureRecord", "--handler", "ensure.plain", "-f", "record.yaml"); !strings.Contains(out, "Published") {
		t.Errorf("beside an open circuit: %s", out)
	}
}

// TestCheck checks both extensions. The one in plain JSON has a handler that never answers.
func TestCheck(t *testing.T) {
	w := newFixture(t)
	check := func(url string, more ...string) (string, error) {
		out, err := own(t, append([]string{
			"check", url, "--ca", w.ca, "--only", "groups,answers,envelope,malformed,idempotence,load", "-v",
		}, more...)...).CombinedOutput()
		return string(out), err
	}
	expect := func(what, out string, lines ...string) {
		t.Helper()
		for _, want := range lines {
			if !regexp.MustCompile(`(?m)^` + want).MatchString(out) {
				t.Errorf("%s: want a line %q in\n%s", what, want, out)
			}
		}
	}

	out, err := check(w.stubs, "--request", "EnsureRecord=record.yaml")
	if err != nil {
		t.Errorf("an extension that keeps the rules: %v", err)
	}
	expect("over gRPC", out, `pass  groups\.discovery`, `pass  groups\.content`, `pass  answers\.valid`, `pass  malformed\.refused`,
		`pass  load\.limit`, `grpcs://\S+, gRPC, 1 handler:`) // RemoveRecord is not called without a request
	out, err = check(w.plain, "--request", "EnsureRecord=record.yaml")
	if err == nil {
		t.Error("a handler that never answers keeps the rules")
	}
	expect("over REST", out, `pass  groups\.discovery`, `FAIL +answers\.in-time`)
	out, _ = check(w.plain)
	expect("without a request", out, `pass  groups\.discovery`, `skip  answers\.valid: .*EnsureRecord`)
}

// TestOpenAPI reads the document that the program makes of the group, and its page. test/extra/openapi validates it.
func TestOpenAPI(t *testing.T) {
	w := newFixture(t)
	document := w.get(t, "/openapi/dns.acme.example/hooks.json")
	var read struct {
		Info  struct{ Title string }
		Paths map[string]any
	}
	if err := json.Unmarshal([]byte(document), &read); err != nil {
		t.Fatal(err)
	}
	if read.Info.Title != "dns.acme.example" || read.Paths["/dns.acme.example/v1alpha1/ensurerecord/{name}"] == nil {
		t.Errorf("the document is not that of the group:\n%s", document)
	}
	for _, path := range []string{"/openapi/", "/openapi/infrastructure.hookgate.dev/", "/openapi/dns.acme.example/"} {
		if page := w.get(t, path); !strings.Contains(page, `dns.acme.example/"`) {
			t.Errorf("the page %s does not link that of the group:\n%s", path, page)
		}
	}
}

// get returns what the gateway has at a path.
func (w *fixture) get(t *testing.T, path string) string {
	t.Helper()
	ca, err := os.ReadFile(w.ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{
		Timeout: process.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + w.gateway.HTTPS + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: status %d, %v: %s", path, response.StatusCode, err, body)
	}
	return string(body)
}

// TestLines holds the program to what the documentation promises.
func TestLines(t *testing.T) {
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n >= 100 {
		t.Errorf("main.go has %d lines", n)
	}
}

// TestExampleOfARequest asks for an example of a hook that has none.
func TestExampleOfARequest(t *testing.T) {
	out, err := own(t, "call", "EnsureRecord", "--example").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "examples only for the hooks of Cluster API, infrastructure and Machines") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestPage runs the `sh` blocks of the guide in one shell. The output has the `text` blocks, in which … stands for any
// text, and blocks of code are in the example.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"bin", "examples"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"bin/acme-gateway": program, "examples/own-hooks": here} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	buildExtension(t, filepath.Join(dir, "bin"))
	var code strings.Builder
	for _, file := range []string{"main.go", "proto/acme/dns/v1alpha1/dns.proto", "../../buf.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	page, err := os.ReadFile("../../docs/own-hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	ports := make([]string, 2)
	for i := range ports {
		ports[i] = fmt.Sprintf("127.0.0.1:%d", process.FreePort(t))
	}
	text := strings.ReplaceAll(string(page), "127.0.0.1:9090", ports[0])

	script, wanted := "trap 'kill $(jobs -p)' EXIT\n", []string{}
	for i, part := range strings.Split(text, "\n```") {
		language, text, ok := strings.Cut(part, "\n")
		if i%2 == 0 || !ok { // between blocks
			continue
		}
		text += "\n"
		switch language {
		case "sh":
			script += text
			if strings.Contains(text, " serve ") {
				script += "until bin/acme-gateway get handlers --ca out/certs/dev-ca.crt 2>&1 | grep -q EnsureRecord; do sleep 0.1; done\n"
			}
		case "text":
			wanted = append(wanted, text)
		case "console": // makes a module, and builds the programs, as this test does
		default:
			if !strings.Contains(code.String(), text) {
				t.Errorf("the example has no such %s:\n%s", language, text)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asProgram+"=1", "HOOKGATE_DIAGNOSTICS_ADDRESS=127.0.0.1:0",
		"HOOKGATE_HTTP_ADDRESS="+ports[1], "HOOKGATE_SERVER=https://"+ports[1])
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, text := range wanted {
		if !regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".+")).Match(out) {
			t.Errorf("the page says that a block prints\n%s\nand they print\n%s", text, out)
		}
	}
	if len(wanted) != 3 {
		t.Errorf("%d outputs were compared, want 3", len(wanted))
	}
}
