// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package badservers

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/process"
)

const (
	// nobody is the user ID of the gateway if the tests run as root, whose permissions it must not have.
	nobody = 65534
	// good is the extension that keeps answering.
	good = "good"
)

// certificates selects a server's certificates.
type certificates int

const (
	none certificates = iota
	valid
	expired
)

// language is a language of the bad servers.
type language struct {
	name    string
	folder  string // to start it in: its example's
	command []string
	env     []string
	// outcomes holds the outcomes that differ from those in cases.
	outcomes map[string]outcome
}

var languages = []language{
	{
		name: "Python", folder: "../../examples/python",
		command: []string{"build/venv/bin/python", "../../test/badservers/server.py"},
		env:     []string{"PYTHONDONTWRITEBYTECODE=1"},
		outcomes: map[string]outcome{
			// Its gRPC closes connections that do not speak HTTP/2, where others refuse the handshake. The gateway
			// knows that the server spoke HTTP/1.1 at first, and has no reason to take this for another protocol.
			"grpc-for-rest": {"Unreachable", "call extension: connection closed without an answer"},
			// Its server closes the connection of a handler that throws.
			"rest-throw": {"Unreachable", "call extension: connection closed without an answer"},
		},
	},
	{name: "Node", folder: "../../examples/typescript", command: []string{"node", "../../test/badservers/server.mjs"}},
}

// fixture is a gateway with a stopped extension for each case, and a running one.
type fixture struct {
	language  language
	dir       string // that every user may enter
	ca        *devcert.Authority
	certs     map[certificates]string
	addresses map[string]string // by case
	gateway   *process.Gateway
	client    *http.Client
	conn      *grpc.ClientConn
}

func newFixture(t *testing.T, l language) *fixture {
	t.Helper()
	path := process.Program(t, "HOOKGATE_BIN")
	w := &fixture{language: l, dir: t.TempDir(), certs: map[certificates]string{none: "-"},
		addresses: map[string]string{}}
	for dir := w.dir; dir != filepath.Dir(os.TempDir()) && dir != os.TempDir(); dir = filepath.Dir(dir) {
		chmod(t, dir, 0o755) // for nobody
	}
	w.issue(t)
	mkdir(t, w.path("configs"))
	addressesOf := map[string][]string{}
	free := freeAddresses(t, len(cases)+1)
	for name, tc := range cases {
		address := free[0]
		free = free[1:]
		if tc.scheme == overSocket {
			address = "unix://" + filepath.Join(shortDir(t), "x.sock")
		}
		w.addresses[name] = address
		addressesOf[tc.scheme] = append(addressesOf[tc.scheme], address)
		w.writeManifest(t, name, tc.scheme, address)
	}
	w.writeManifest(t, good, overPlain, free[0])
	w.startServer(t, "grpc", none, free[0])
	before := []*process.Process{
		w.startServer(t, "grpc", none, append(addressesOf[overPlain], addressesOf[overSocket]...)...),
		w.startServer(t, "grpc", valid, addressesOf[overTLS]...),
		w.startServer(t, "rest", valid, addressesOf[overREST]...),
	}
	for _, address := range addressesOf[overSocket] {
		chmod(t, strings.TrimPrefix(address, "unix://"), 0o666)
	}
	w.startGateway(t, path)
	for name := range cases {
		process.Eventually(t, name+" is discovered, and answers",
			func() bool { return w.call(t, "create."+name) == nil })
	}
	for _, p := range before {
		p.Kill()
	}
	for _, address := range addressesOf[overSocket] {
		_ = os.Remove(strings.TrimPrefix(address, "unix://")) // a server may have done so
	}
	return w
}

func (w *fixture) path(name string) string { return filepath.Join(w.dir, name) }

// issue makes a CA, and the folders of certificates.
func (w *fixture) issue(t *testing.T) {
	t.Helper()
	var err error
	if w.ca, err = devcert.NewAuthority(time.Now().Add(24 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	for c, notAfter := range map[certificates]time.Time{valid: time.Now().Add(24 * time.Hour), expired: time.Now().Add(-time.Minute)} {
		pair, err := w.ca.Issue(notAfter)
		if err != nil {
			t.Fatal(err)
		}
		w.certs[c] = w.path(fmt.Sprint("certs", c))
		mkdir(t, w.certs[c])
		for file, content := range map[string][]byte{"tls.crt": pair.CertPEM, "tls.key": pair.KeyPEM} {
			write(t, filepath.Join(w.certs[c], file), content)
		}
	}
}

// writeManifest creates the ExtensionConfig of an extension, and a policy without which its circuit would soon be open,
// and all calls fail in one way.
func (w *fixture) writeManifest(t *testing.T, name, scheme, address string) {
	t.Helper()
	url, bundle := scheme+"://"+strings.TrimPrefix(address, "unix://"), ""
	if scheme == overTLS || scheme == overREST {
		bundle = base64.StdEncoding.EncodeToString(w.ca.PEM)
	}
	write(t, w.path("configs/"+name+".yaml"), fmt.Appendf(nil,
		"apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: %s}\nspec: {clientConfig: {url: %q, caBundle: %q}}\n"+
			"---\napiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: %[1]s}\n"+
			"spec: {targetRef: {name: %[1]s}, circuit: {mode: Disabled}}\n",
		name, url, bundle))
}

func (w *fixture) startServer(t *testing.T, mode string, c certificates, addresses ...string) *process.Process {
	t.Helper()
	args := append(append(w.language.command[1:len(w.language.command):len(w.language.command)], mode, w.certs[c]),
		addresses...)
	cmd := exec.Command(w.language.command[0], args...)
	cmd.Dir, cmd.Env = w.language.folder, append(os.Environ(), w.language.env...)
	p := process.Run(t, "server "+mode, cmd)
	if said := p.Expect(t, `(?m)^listening on (.*)\n`)[1]; said != addresses[0] {
		t.Fatalf("the server says that it listens on %q, want %q", said, addresses[0])
	}
	return p
}

func (w *fixture) startGateway(t *testing.T, path string) {
	t.Helper()
	copied := w.path("hookgate") // in a folder without access for others
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, copied, content)
	chmod(t, copied, 0o755)
	args := append([]string{"serve", "--extension-configs", w.path("configs"), "--cert-dir", w.certs[valid]},
		process.AnyPorts()...)
	cmd := exec.Command(copied, args...)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	w.gateway = process.RunGateway(t, cmd)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.ca.PEM)
	config := &tls.Config{RootCAs: roots}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	w.client = &http.Client{Transport: transport, Timeout: process.Patience}
	if w.conn, err = grpc.NewClient(w.gateway.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(config))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.conn.Close() })
}

// awaitServer calls over REST and over gRPC until the gateway has reached the server: it may be new, and one that cuts
// its connections may have cut the one that the gateway was just making. Calls then fail as Unreachable, which counts
// only if it is the kind to expect and the text has its reason.
func (w *fixture) awaitServer(t *testing.T, handler, want string) (code int, kind string, body []byte, st *status.Status) {
	t.Helper()
	reached := func(kind, text string) bool {
		return (kind == want || kind != "Unreachable") && !strings.Contains(text, "connection refused") &&
			!strings.Contains(text, "there is no such socket")
	}
	process.Eventually(t, "the gateway has found the server", func() bool {
		code, kind, body = w.post(t, handler)
		return reached(kind, string(body))
	})
	process.Eventually(t, "the gateway has found the server", func() bool {
		began := time.Now()
		st = status.Convert(w.call(t, handler))
		if took := time.Since(began); took > 25*time.Second { // a handler may have 30 s
			t.Errorf("the caller waited for %s", took)
		}
		return reached(kindOf(st), st.Message())
	})
	return code, kind, body, st
}

// post calls the hook over REST.
func (w *fixture) post(t *testing.T, handler string) (code int, kind string, body []byte) {
	t.Helper()
	response, err := w.client.Post("https://"+w.gateway.HTTPS+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/"+handler,
		"application/json", strings.NewReader(`{"cluster":{"metadata":{"name":"c"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if body, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Hookgate-Error-Kind"), body
}

// call calls the hook over gRPC.
func (w *fixture) call(t *testing.T, handler string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	defer cancel()
	_, err := hooksv1alpha1.NewLifecycleHooksServiceClient(w.conn).BeforeClusterCreate(ctx, &hooksv1alpha1.BeforeClusterCreateRequest{
		Handler: handler, Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"name":"c"}}`)},
	})
	return err
}

// kindOf returns the kind of an error that came over gRPC.
func kindOf(st *status.Status) string {
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// checkGood calls the good extension over both protocols.
func (w *fixture) checkGood(t *testing.T) {
	t.Helper()
	if code, _, body := w.post(t, "create."+good); code != http.StatusOK ||
		!bytes.Contains(body, []byte(`"message":"fine"`)) {
		t.Errorf("another extension, over REST: status %d: %s", code, body)
	}
	if err := w.call(t, "create."+good); err != nil {
		t.Errorf("another extension, over gRPC: %v", err)
	}
}

// freeAddresses returns addresses on loopback that nothing listens on, all different.
func freeAddresses(t *testing.T, n int) []string {
	t.Helper()
	addresses := make([]string, n)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("127.0.0.1:%d", process.FreePort(t))
	}
	return addresses
}

// shortDir returns a new private folder whose path fits into the 108 bytes of a Unix socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "x") //nolint:usetesting // the path of t.TempDir is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	chmod(t, dir, 0o755)
	return dir
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, 0o755)
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, 0o644)
}

// chmod sets permissions for a gateway that may run as nobody, regardless of the umask.
func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
