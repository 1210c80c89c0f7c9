// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	ctrl "sigs.k8s.io/controller-runtime"

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/infrastructure/cloud"
	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
	"github.com/hookgate/hookgate/test/process"
)

// folder has the examples.
const folder = "../../../examples/infrastructure"

// cloudToken is the token of the cloud.
const cloudToken = "of-the-cloud"

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	log.SetOutput(io.Discard) // the API servers of the cloud are noisy
	os.Exit(m.Run())
}

// extension is what the tests know about an example.
type extension struct {
	// command returns the program, with the arguments that come before the address and the directory of certificates.
	command func(t *testing.T) []string
	// policy says how the gateway calls it, besides the ExtensionConfig.
	policy string
}

// fixture is a cloud, one of the examples in front of it, and a gateway in front of that.
type fixture struct {
	*testing.T

	cloud     *api.Client
	gateway   *process.Gateway
	provider  *process.Process
	start     func() *process.Process // the example, after it was killed
	address   string                  // of the example, whose certificate ca has signed
	ca        string
	discovery infrastructurev1alpha1.DiscoveryServiceClient
	clusters  infrastructurev1alpha1.ClusterHooksServiceClient
	machines  infrastructurev1alpha1.MachineHooksServiceClient
}

// newFixture starts everything, and waits until the gateway has discovered the example.
func newFixture(t *testing.T, x extension, environment ...string) *fixture {
	t.Helper()
	path := process.Program(t, "HOOKGATE_BIN")
	certs, configs, address := t.TempDir(), t.TempDir(), freeAddress(t)
	pair := certificates.In(t, certs)
	w := &fixture{
		T: t, cloud: &api.Client{URL: startCloud(t), Token: cloudToken},
		address: address, ca: filepath.Join(certs, devcert.CAFile),
	}

	command := append(x.command(t), address, certs)
	w.start = func() *process.Process {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = append(append(os.Environ(), "CLOUD_URL="+w.cloud.URL), environment...)
		p := process.Run(t, "extension", cmd)
		p.Expect(t, `listening on `)
		return p
	}
	w.provider = w.start()

	manifest := fmt.Sprintf("apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: acme}\n"+
		"spec: {clientConfig: {url: https://%s, caBundle: %s}}\n---\napiVersion: hookgate.dev/v1alpha1\n"+
		"kind: ExtensionPolicy\nmetadata: {name: acme}\nspec: {targetRef: {name: acme}, timeoutSeconds: 30%s}\n",
		address, base64.StdEncoding.EncodeToString(pair.CAPEM), x.policy)
	if err := os.WriteFile(filepath.Join(configs, "acme.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"serve", "--extension-configs", configs, "--cert-dir", certs, "--resync", "1s"},
		process.AnyPorts()...)
	w.gateway = process.RunGateway(t, exec.Command(path, args...))
	w.gateway.WaitReady(t)
	conn, err := grpc.NewClient(w.gateway.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(pair.ClientTLS())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	w.discovery = infrastructurev1alpha1.NewDiscoveryServiceClient(conn)
	w.clusters = infrastructurev1alpha1.NewClusterHooksServiceClient(conn)
	w.machines = infrastructurev1alpha1.NewMachineHooksServiceClient(conn)
	return w
}

// startCloud serves a cloud in this process, which lives on when an extension is killed, and returns its URL.
func startCloud(t *testing.T) string {
	t.Helper()
	fake, err := cloud.New(cloud.Config{Token: cloudToken})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(initializing(t, fake))
	t.Cleanup(func() {
		server.CloseClientConnections() // requests that hang end with their connection
		server.Close()
		if err := fake.Close(); err != nil {
			t.Error(err)
		}
	})
	return server.URL
}

// freeAddress returns an address on loopback that nothing listens on, for a program that will be started again there.
func freeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", process.FreePort(t))
}

// must calls the cloud and fails the test on an error.
func (w *fixture) must(method, path string, body, result any) {
	w.Helper()
	if err := w.cloud.Do(w.Context(), method, path, body, result); err != nil {
		w.Fatalf("%s %s: %v", method, path, err)
	}
}

// faults replaces what goes wrong in the cloud.
func (w *fixture) faults(faults api.Faults) {
	w.Helper()
	w.must(http.MethodPut, "/faults", faults, nil)
}

// counts returns what the cloud has and had.
func (w *fixture) counts() api.Counts {
	w.Helper()
	var counts api.Counts
	w.must(http.MethodGet, "/counts", nil, &counts)
	return counts
}

// checkMachines fails the test unless the cloud has so many machines, and has made so many.
func (w *fixture) checkMachines(exist, created int) {
	w.Helper()
	counts := w.counts()
	if m := counts.Machines; m.Exist != exist || m.Created != created || len(counts.Repeated) != 0 {
		w.Fatalf("the cloud has %d machines, made %d, and made more than once %v; want %d, %d and none",
			m.Exist, m.Created, counts.Repeated, exist, created)
	}
}

// subject returns what a hook is about, with the credentials of the cloud.
func subject(id string) *infrastructurev1alpha1.Subject {
	return &infrastructurev1alpha1.Subject{
		ExternalId: id, ClusterExternalId: "net", Namespace: "default", Name: strings.TrimSuffix(id, "-id"), ClusterName: "one",
		Credentials: map[string]string{"token": cloudToken + "\n"}, // files that Secrets are made of end with a newline
	}
}

// soon returns a context that ends with the test, or once any call should be over.
func (w *fixture) soon() context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), process.Patience)
	w.Cleanup(cancel)
	return ctx
}
