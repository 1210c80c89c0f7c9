// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookgate/hookgate/convert"
	"github.com/hookgate/hookgate/devcert"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/test/conversion/random"
	"github.com/hookgate/hookgate/test/process"
)

// carriers are the hooks that take an object of each kind to an extension, and where it is in their requests.
var carriers = map[string]struct {
	hook string
	path []string
}{
	"Cluster":    {"BeforeClusterDelete", []string{"cluster"}},
	"Machine":    {"UpdateMachine", []string{"desired", "machine"}},
	"MachineSet": {"CanUpdateMachineSet", []string{"current", "machineSet"}},
}

// witness is an extension that keeps what it gets, by the id of the call.
type witness struct{ got sync.Map }

func (w *witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	var answer string
	if strings.HasSuffix(r.URL.Path, "/discovery") {
		var handlers []string
		for _, c := range carriers {
			handlers = append(handlers, fmt.Sprintf(`{"name":%q,"requestHook":{"apiVersion":%q,"hook":%q}}`, strings.ToLower(c.hook), hook.APIVersion, c.hook))
		}
		answer = `,"handlers":[` + strings.Join(handlers, ",") + `]`
	} else {
		w.got.Store(r.Header.Get("Hookgate-Call-Id"), body)
	}
	out.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(out, `{"status":"Success"`+answer+`}`) // a gateway that left needs no answer
}

// gateway is a process that serves the witness twice: as an extension that understands v1beta1, and as one that understands
// v1beta2. Their names are the versions.
type gateway struct {
	url     string
	client  *http.Client
	witness *witness
}

func startGateway(t *testing.T) *gateway {
	t.Helper()
	binary := os.Getenv("HOOKGATE_BIN")
	if binary == "" {
		t.Fatal("HOOKGATE_BIN names no gateway: run \"make test\", or build one and set it to its path")
	}
	w := &witness{}
	extension := httptest.NewUnstartedServer(w)
	extension.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	extension.StartTLS()
	t.Cleanup(extension.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: extension.Certificate().Raw})

	manifests, certs := t.TempDir(), t.TempDir()
	var objects []any
	for _, version := range []string{convert.V1Beta1, convert.V1Beta2} {
		objects = append(objects, map[string]any{
			"apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": map[string]any{"name": version},
			"spec": map[string]any{"clientConfig": map[string]any{"url": extension.URL + "/" + version, "caBundle": ca}},
		}, map[string]any{
			"apiVersion": "hookgate.dev/v1alpha1", "kind": "ExtensionPolicy", "metadata": map[string]any{"name": version},
			"spec": map[string]any{"targetRef": map[string]any{"name": version}, "clusterAPIVersion": version},
		})
	}
	for _, crd := range random.CRDs() {
		objects = append(objects, map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": crd.Name, "labels": crd.Labels},
		})
	}
	for i, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(manifests, strconv.Itoa(i)+".json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := devcert.New(time.Now().Add(time.Hour), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.WriteDir(certs); err != nil {
		t.Fatal(err)
	}
	p, line, err := process.Start(t.Context(), t.TempDir(), "gateway", "hookgate serving ", exec.Command(binary, "serve", "--extension-configs", manifests,
		"--cert-dir", certs, "--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	addresses := map[string]string{}
	for _, f := range strings.Fields(line) {
		name, value, _ := strings.Cut(f, "=")
		addresses[name] = value
	}
	g := &gateway{url: "https://" + addresses["https"], witness: w, client: &http.Client{Transport: &http.Transport{TLSClientConfig: pair.ClientTLS()}}}
	t.Cleanup(g.client.CloseIdleConnections)
	for end := time.Now().Add(30 * time.Second); ; {
		resp, err := http.Get("http://" + addresses["diagnostics"] + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return g
			}
		}
		if time.Now().After(end) {
			t.Fatalf("the gateway is not ready: %v\n%s", err, p.LogTail())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// through sends an object to the handler that understands a version, and returns it as the handler got it.
func (g *gateway) through(t *testing.T, id, kind string, object []byte, to string) []byte {
	t.Helper()
	c := carriers[kind]
	body := object
	for i := range c.path {
		body = fmt.Appendf(nil, `{%q:%s}`, c.path[len(c.path)-1-i], body)
	}
	path := hook.GroupVersionHook{Group: hook.Group, Version: "v1alpha1", Hook: c.hook}.Path(strings.ToLower(c.hook) + "." + to)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Hookgate-Call-Id", id)
	resp, err := g.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"status":"Success"`)) {
		t.Fatalf("the gateway answered %s: %s (%v)\nobject: %s", resp.Status, answer, err, object)
	}
	got, ok := g.witness.got.LoadAndDelete(id)
	if !ok {
		t.Fatalf("the extension did not get %s", object)
	}
	var seen json.RawMessage = got.([]byte)
	for _, name := range c.path {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(seen, &members); err != nil {
			t.Fatalf("%v in %s", err, seen)
		}
		seen = members[name]
	}
	return seen
}

// What goes through the gateway and back is what Cluster API's own converters yield: there to a handler that understands the other
// version, and back to one that understands the object's own.
func TestThroughTheGateway(t *testing.T) {
	g := startGateway(t)
	for _, kind := range random.Kinds {
		for _, d := range [][2]string{{convert.V1Beta2, convert.V1Beta1}, {convert.V1Beta1, convert.V1Beta2}} {
			from, to := d[0], d[1]
			t.Run(fmt.Sprintf("%s from %s", kind, from), func(t *testing.T) {
				generator := random.New(seed(t) + 1)
				for n := range objects {
					object := marshal(t, generator.Object(kind, from))
					got := g.through(t, fmt.Sprintf("%s-%s-%d-there", kind, from, n), kind, object, to)
					_, want := upstream(t, object, kind, from, to)
					compare(t, n, "there", object, want, got)
					back := g.through(t, fmt.Sprintf("%s-%s-%d-back", kind, from, n), kind, got, from)
					_, wantBack := upstream(t, want, kind, to, from)
					compare(t, n, "back", got, wantBack, back)
					if t.Failed() {
						t.FailNow()
					}
				}
			})
		}
	}
}
