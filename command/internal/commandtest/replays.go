// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commandtest

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// What the requests of replays have in common.
const (
	ReplayPrefix = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
	ReplaySecret = "s3cr3t-of-a-test"
)

// ReplayExtension is an extension whose patches of a Cluster are those that patch returns, as type and text.
func ReplayExtension(t *testing.T, patch func(cluster string) (kind, patch string)) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		switch name := strings.TrimPrefix(r.URL.Path, ReplayPrefix); name {
		case "discovery":
			_, _ = io.WriteString(w, `{"status":"Success","handlers":[`+Offer("p", "GeneratePatches")+`,`+Offer("b", "BeforeClusterCreate")+
				`,`+Offer("a", "AfterClusterUpgrade")+`]}`)
		case "generatepatches/p":
			var request struct {
				Items []struct {
					UID             string
					HolderReference struct{ Name string }
				}
			}
			if err := json.Unmarshal(body, &request); err != nil {
				t.Error(err)
			}
			kind, text := patch(request.Items[0].HolderReference.Name)
			_, _ = fmt.Fprintf(w, `{"status":"Success","message":"","items":[{"uid":"%s","patchType":"%s","patch":"%s"}]}`,
				request.Items[0].UID, kind, base64.StdEncoding.EncodeToString([]byte(text)))
		default:
			_, _ = io.WriteString(w, `{"status":"Success","message":"now","retryAfterSeconds":0}`)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// CAOf returns the certificate of a server as PEM.
func CAOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// ReplayRequest returns a request for a Cluster.
func ReplayRequest(cluster int) string {
	return fmt.Sprintf(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"GeneratePatchesRequest","variables":[`+
		`{"name":"builtin","value":{"cluster":{"name":"c%d","namespace":"n"}}},{"name":"registryPassword","value":%q}],"items":[`+
		`{"uid":"u%d","holderReference":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","name":"c%d","namespace":"n",`+
		`"fieldPath":"spec.infrastructureRef"},"object":{"apiVersion":"a/v1","kind":"T","spec":{"template":{"spec":{"password":%q,"n":1}}}}}]}`,
		cluster, ReplaySecret, cluster, cluster, ReplaySecret)
}

// ServeInFrontOf serves a gateway in front of an extension, acme, with more flags. It returns a client that trusts it.
func ServeInFrontOf(t *testing.T, extension *httptest.Server, more ...string) (*process.Gateway, *http.Client) {
	t.Helper()
	configs, certs := t.TempDir(), t.TempDir()
	pair := certificates.In(t, certs)
	err := os.WriteFile(filepath.Join(configs, "acme.yaml"), []byte("apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\n"+
		"metadata: {name: acme}\nspec: {clientConfig: {url: \""+extension.URL+"\", caBundle: "+
		base64.StdEncoding.EncodeToString(CAOf(extension))+"}}\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	g := ServeProgram(t, configs, certs, more...)
	g.WaitReady(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: pair.ClientTLS()}}
	t.Cleanup(client.CloseIdleConnections)
	return g, client
}

// Recorded returns the text of all files of a recording.
func Recorded(t *testing.T, dir string) string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	var b strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}
