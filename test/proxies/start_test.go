// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/process"
)

const (
	success = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
	// slowness is longer than the time that Envoy waits by default, and shorter than what the gateway allows.
	slowness = 16 * time.Second
	message  = "waits for the label team"
)

// extension answers the hook for new Clusters at once, and that for upgraded ones slowly.
type extension struct {
	hooksv1alpha1.UnimplementedDiscoveryServiceServer
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
}

func (extension) Discovery(context.Context, *hooksv1alpha1.DiscoveryRequest) (*hooksv1alpha1.DiscoveryResponse, error) {
	handler := func(name, hook string) *hooksv1alpha1.ExtensionHandler {
		return &hooksv1alpha1.ExtensionHandler{
			Name:           name,
			RequestHook:    &hooksv1alpha1.GroupVersionHook{ApiVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: hook},
			TimeoutSeconds: proto.Int32(30), FailurePolicy: hooksv1alpha1.FailurePolicy_FAILURE_POLICY_FAIL,
		}
	}
	return &hooksv1alpha1.DiscoveryResponse{Status: success, Handlers: []*hooksv1alpha1.ExtensionHandler{
		handler("fast", "BeforeClusterCreate"), handler("slow", "AfterControlPlaneInitialized"),
	}}, nil
}

func (extension) BeforeClusterCreate(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
	return &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, RetryAfterSeconds: 30, Message: message}, nil
}

func (extension) AfterControlPlaneInitialized(
	ctx context.Context, _ *hooksv1alpha1.AfterControlPlaneInitializedRequest,
) (*hooksv1alpha1.AfterControlPlaneInitializedResponse, error) {
	select {
	case <-time.After(slowness): // the subject of the test, not a wait for something
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &hooksv1alpha1.AfterControlPlaneInitializedResponse{Status: success, Message: message}, nil
}

// setup is a gateway with its extension behind a proxy.
type setup struct {
	trusted     *x509.CertPool
	certificate tls.Certificate // the caller's
	// The addresses of the proxy: where it ends TLS, and where it passes HTTPS and gRPC on.
	terminating, https, grpc string
}

// start runs an extension, a gateway that asks for certificates, and a proxy with the configuration file in front of it.
func start(t *testing.T, configuration string, command func(dir, file string) *exec.Cmd) *setup {
	t.Helper()
	notAfter := time.Now().Add(time.Hour)
	authority, err := devcert.NewAuthority(notAfter)
	if err != nil {
		t.Fatal(err)
	}
	issue := func() *devcert.Pair {
		pair, err := authority.Issue(notAfter)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	// The directory is short and everyone's to enter, because nginx's workers give up root.
	certs, configs, dir := t.TempDir(), t.TempDir(), t.TempDir()
	for into, ca := range map[string]string{certs: "ca.crt", dir: "callers-ca.crt"} {
		if err := issue().WriteDir(into); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(into, ca), string(authority.PEM))
	}
	write(t, filepath.Join(configs, "acme.yaml"), fmt.Sprintf(`apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata: {name: acme}
spec: {clientConfig: {url: "grpc://%s"}}
`, serve(t)))
	g := process.RunGateway(t, exec.Command(process.Program(t, "HOOKGATE_BIN"),
		append([]string{"serve", "--extension-configs", configs, "--cert-dir", certs}, process.AnyPorts()...)...))
	g.WaitReady(t)
	g.Expect(t, "extension discovered") // it is ready once it has tried

	s := &setup{trusted: x509.NewCertPool()}
	s.trusted.AppendCertsFromPEM(authority.PEM)
	if s.certificate, err = issue().Certificate(); err != nil {
		t.Fatal(err)
	}
	_, httpsPort, _ := net.SplitHostPort(g.HTTPS)
	_, grpcPort, _ := net.SplitHostPort(g.GRPC)
	replace := []string{"/etc/proxy", dir, "9443", httpsPort, "9090", grpcPort}
	for port, address := range map[string]*string{"8443": &s.terminating, "8444": &s.https, "8445": &s.grpc} {
		free := strconv.Itoa(process.FreePort(t))
		*address = "127.0.0.1:" + free
		replace = append(replace, port, free)
	}
	file := filepath.Join(dir, filepath.Base(configuration))
	write(t, file, strings.NewReplacer(replace...).Replace(read(t, configuration)))
	proxy := process.Run(t, configuration, command(dir, file))
	for _, address := range []string{s.terminating, s.https, s.grpc} {
		process.Eventually(t, configuration+" listens on "+address, func() bool {
			select {
			case <-proxy.Exited():
				t.Fatalf("%s: the proxy has ended", configuration)
			default:
			}
			conn, err := net.Dial("tcp", address)
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		})
	}
	return s
}

// serve runs the extension, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(20 << 20))
	hooksv1alpha1.RegisterDiscoveryServiceServer(server, extension{})
	hooksv1alpha1.RegisterLifecycleHooksServiceServer(server, extension{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
