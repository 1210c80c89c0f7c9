// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
)

// largest is close to the most that the gateway takes, 20 MiB with what is around it.
const largest = 20<<20 - 4096

func TestEnvoy(t *testing.T) {
	t.Parallel()
	program := process.Program(t, "HOOKGATE_ENVOY")
	check(t, start(t, "envoy.yaml", func(_, file string) *exec.Cmd {
		return exec.Command(program, "--config-path", file, "--disable-hot-restart", "--concurrency", "1", "--log-level", "warning")
	}))
}

func TestNginx(t *testing.T) {
	t.Parallel()
	program := process.Program(t, "HOOKGATE_NGINX")
	check(t, start(t, "nginx.conf", func(_, file string) *exec.Cmd {
		// Modules are where Debian's package has them, beside the program.
		root := filepath.Join(filepath.Dir(program), "..", "share", "nginx")
		return exec.Command(program, "-p", root, "-c", file, "-g", "user root;")
	}))
}

// settings is a row of the page: what, Envoy's setting, nginx's setting, and why.
var settings = regexp.MustCompile("(?m)^\\| [^|`]+ \\| (?:`([^`]+)` )?\\| (?:`([^`]+)` )?\\| [^|]+ \\|$")

// TestPageShowsTheConfigurations looks for the settings of the page in the files that the other tests run.
func TestPageShowsTheConfigurations(t *testing.T) {
	page := read(t, filepath.Join("..", "..", "docs", "proxies.md"))
	found := 0
	for _, row := range settings.FindAllStringSubmatch(page, -1) {
		for i, file := range []string{"envoy.yaml", "nginx.conf"} {
			if setting := row[i+1]; setting != "" {
				found++
				if !strings.Contains(read(t, file), setting) {
					t.Errorf("the page has %q, and %s does not", setting, file)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("%d settings were found: the page has more", found)
	}
}

// check calls through each way of the proxy.
func check(t *testing.T, s *setup) {
	for protocol, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run("REST over "+protocol, func(t *testing.T) {
			client := s.http(t, h2, true)
			for name, address := range map[string]string{"TLS ends at the proxy": s.terminating, "TLS passes": s.https} {
				proto, body, err := post(client, address, "beforeclustercreate", "")
				if err != nil || !strings.Contains(body, message) {
					t.Errorf("%s: %q, %v", name, body, err)
				}
				if name == "TLS ends at the proxy" && proto != protocol {
					t.Errorf("%s: the answer has come over %s", name, proto)
				}
			}
		})
	}
	t.Run("gRPC", func(t *testing.T) {
		for name, address := range map[string]string{"TLS ends at the proxy": s.terminating, "TLS passes": s.grpc} {
			answer, err := s.lifecycle(t, address, true).BeforeClusterCreate(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: cluster("")})
			if err != nil || !strings.Contains(answer.GetMessage(), message) {
				t.Errorf("%s: %v, %v", name, answer, err)
			}
		}
	})
	t.Run("Without a certificate", func(t *testing.T) {
		// Envoy ends the handshake, nginx answers 400: either way, the gateway is not called in the name of the proxy.
		_, body, err := post(s.http(t, false, false), s.terminating, "beforeclustercreate", "")
		if err == nil && !strings.Contains(body, "No required SSL certificate was sent") {
			t.Errorf("the proxy that ends TLS lets it through: %s", body)
		}
		// TLS 1.3 has an alert for it, which only the gateway can have sent. A request behind the handshake could be answered
		// by a reset, which overtakes it.
		if err := alertOf(s.https, s.tls(false)); err == nil || !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("the gateway answers %v, behind a proxy that passes TLS on", err)
		}
		for _, address := range []string{s.terminating, s.grpc} {
			if _, err := s.lifecycle(t, address, false).BeforeClusterCreate(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: cluster("")}); err == nil {
				t.Errorf("a call over gRPC to %s gets an answer", address)
			}
		}
	})
	t.Run("Large bodies", func(t *testing.T) {
		large := strings.Repeat("x", largest)
		for name, address := range map[string]string{"TLS ends at the proxy": s.terminating, "TLS passes": s.https} {
			if _, body, err := post(s.http(t, true, true), address, "beforeclustercreate", large); err != nil || !strings.Contains(body, message) {
				t.Errorf("%s: REST: %.500q, %v", name, body, err)
			}
		}
		answer, err := s.lifecycle(t, s.terminating, true).BeforeClusterCreate(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: cluster(large)})
		if err != nil || !strings.Contains(answer.GetMessage(), message) {
			t.Errorf("gRPC: %v, %v", answer, err)
		}
	})
	t.Run("Slow answers", func(t *testing.T) {
		t.Run("REST", func(t *testing.T) {
			t.Parallel()
			if _, body, err := post(s.http(t, false, true), s.terminating, "aftercontrolplaneinitialized", ""); err != nil || !strings.Contains(body, message) {
				t.Errorf("%q, %v", body, err)
			}
		})
		t.Run("gRPC", func(t *testing.T) {
			t.Parallel()
			answer, err := s.lifecycle(t, s.terminating, true).AfterControlPlaneInitialized(t.Context(),
				&hooksv1alpha1.AfterControlPlaneInitializedRequest{Cluster: cluster("")})
			if err != nil || !strings.Contains(answer.GetMessage(), message) {
				t.Errorf("%v, %v", answer, err)
			}
		})
	})
}

// tls returns what a caller uses, with or without a certificate.
func (s *setup) tls(certificate bool) *tls.Config {
	config := &tls.Config{RootCAs: s.trusted, ServerName: "localhost", MinVersion: tls.VersionTLS12}
	if certificate {
		config.Certificates = []tls.Certificate{s.certificate}
	}
	return config
}

func (s *setup) http(t *testing.T, h2, certificate bool) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!h2)
	protocols.SetHTTP2(h2)
	transport := &http.Transport{TLSClientConfig: s.tls(certificate), Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: process.Patience}
}

func (s *setup) lifecycle(t *testing.T, address string, certificate bool) hooksv1alpha1.LifecycleHooksServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(s.tls(certificate))),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(20<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return hooksv1alpha1.NewLifecycleHooksServiceClient(conn)
}

// alertOf returns what ends a connection on which nothing is sent but a handshake.
func alertOf(address string, config *tls.Config) error {
	d := &tls.Dialer{NetDialer: &net.Dialer{Timeout: process.Patience}, Config: config}
	conn, err := d.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(process.Patience)); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// post calls a hook over REST, and returns the protocol and the body of the answer.
func post(client *http.Client, address, hook, padding string) (protocol, body string, err error) {
	request := fmt.Sprintf(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","cluster":%s}`, cluster(padding).GetRaw())
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/"+hook, strings.NewReader(request))
	if err != nil {
		return "", "", err
	}
	response, err := client.Do(r)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.Proto, string(text), err
}

func cluster(padding string) *hooksv1alpha1.RawExtension {
	return &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"a","namespace":"b","annotations":{"padding":%q}}}`, padding)}
}
