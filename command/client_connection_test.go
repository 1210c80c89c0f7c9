// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
)

// discover calls Discovery with the flags and checks how it fails.
func discover(t *testing.T, reason, want string, flags ...string) {
	t.Helper()
	got := hookgate(t, "", append([]string{"call", "Discovery", "--timeout", "20s"}, flags...)...)
	if got.code != cmdline.ExitFailed || got.out != "" || got.errOut != "hookgate: call Discovery: "+want+"\n" {
		t.Errorf("%s:\n got %d %s%s\nwant %s", reason, got.code, got.out, got.errOut, want)
	}
}

func TestUnreachable(t *testing.T) {
	const address = "127.0.0.1:1"
	for _, scheme := range []string{"https://", "grpcs://", "grpc://"} {
		discover(t, "no server listens", "server "+scheme+address+": connection refused\nDoes it run, and is the port right?",
			"--server", scheme+address)
	}
}

func TestCertificates(t *testing.T) {
	f := newFakeServer(t, nil)
	other := newFakeServer(t, nil)
	for _, server := range []string{f.http.URL, "grpcs://" + f.grpcs} {
		discover(t, "the system does not know the CA",
			"server "+server+": certificate not trusted: signed by an unknown authority\nGive the CA that signed it: --ca FILE.",
			"--server", server)
		discover(t, "the file has another CA",
			"server "+server+": certificate not trusted: signed by an unknown authority\nGive the CA that signed it: --ca FILE, which is not "+other.caFile+".",
			"--server", server, "--ca", other.caFile)
	}
}

func TestExpiredCertificate(t *testing.T) {
	pair, err := devcert.New(time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	f := newFakeServerWith(t, nil, pair, func(*tls.Config) {})
	for _, server := range []string{f.http.URL, "grpcs://" + f.grpcs} {
		got := hookgate(t, "", "call", "Discovery", "--server", server, "--ca", f.caFile)
		if want := "server " + server + ": certificate not trusted: expired or not yet valid\nx509: certificate has expired"; !strings.Contains(got.errOut, want) {
			t.Errorf("got %s\nwant %s", got.errOut, want)
		}
	}
}

func TestCertificateForAnotherName(t *testing.T) {
	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.EnableHTTP2 = true
	tlsServer.StartTLS() // with a certificate for example.com and the loopback addresses
	defer tlsServer.Close()
	ca := writeFile(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlsServer.Certificate().Raw})))
	_, port, err := net.SplitHostPort(tlsServer.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range []string{"https://localhost:" + port, "grpcs://localhost:" + port} {
		got := hookgate(t, "", "call", "Discovery", "--server", server, "--ca", ca)
		if want := "server " + server + ": certificate not trusted: not made out to \"localhost\"\nx509: certificate is valid for example.com"; !strings.Contains(got.errOut, want) {
			t.Errorf("got %s\nwant %s", got.errOut, want)
		}
	}
}

func TestClientCertificate(t *testing.T) {
	dir := t.TempDir()
	pair := certificates.In(t, dir)
	f := newFakeServerWith(t, map[string]fakeReply{"Discovery": {body: reply("Discovery", `"status":"Success","handlers":[]`)}}, pair, func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, pair.ClientTLS().RootCAs
	})
	for _, server := range []string{f.http.URL, "grpcs://" + f.grpcs} {
		discover(t, "the server wants a certificate", "server "+server+": the server asked for a client certificate, and ended the connection without one\nShow one: --cert FILE and --key FILE.",
			"--server", server, "--ca", f.caFile)
		got := hookgate(t, "", "call", "Discovery", "--server", server, "--ca", f.caFile,
			"--cert", filepath.Join(dir, devcert.CertFile), "--key", filepath.Join(dir, devcert.KeyFile))
		if got.code != cmdline.ExitDone {
			t.Errorf("%s: with a certificate: %+v", server, got)
		}
	}
}

// noTLS returns the end of the message about a server without TLS.
func noTLS(address string) string {
	return "the server does not speak TLS\ngRPC without TLS is --server grpc://" + address + "; is it perhaps a port for metrics or health?"
}

// TestWrongProtocol mixes up the addresses of protocols.
func TestWrongProtocol(t *testing.T) {
	f := newFakeServer(t, nil)
	discover(t, "HTTPS to a server without TLS", "server https://"+f.grpc+": "+noTLS(f.grpc),
		"--server", "https://"+f.grpc)
	discover(t, "gRPC with TLS to a server without", "server grpcs://"+f.grpc+": "+noTLS(f.grpc),
		"--server", "grpcs://"+f.grpc)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	server := strings.Replace(plain.URL, "http:", "https:", 1)
	discover(t, "HTTPS to a server of plain HTTP", "server "+server+": "+noTLS(strings.TrimPrefix(server, "https://")), "--server", server)
	got := hookgate(t, "", "call", "Discovery", "--server", "grpc://"+f.grpcs)
	if want := ": the server does not speak gRPC without TLS\nWith TLS, that is --server grpcs://" + f.grpcs + "."; !strings.Contains(got.errOut, want) {
		t.Errorf("gRPC without TLS to a server with: got %s\nwant %s", got.errOut, want)
	}
	got = hookgate(t, "", "call", "Discovery", "--server", "https://"+f.grpcs, "--ca", f.caFile)
	if want := "Call it with --server grpcs://" + f.grpcs + "."; !strings.Contains(got.errOut, want) {
		t.Errorf("HTTPS JSON to a gRPC server: got %s\nwant %s", got.errOut, want)
	}
	got = hookgate(t, "", "call", "Discovery", "--server", strings.Replace(f.http.URL, "https", "grpcs", 1), "--ca", f.caFile)
	if want := ": the server does not speak gRPC\nDoes it speak JSON over HTTPS? That is --server " + f.http.URL + ".\n"; !strings.Contains(got.errOut, want) {
		t.Errorf("gRPC to a server of HTTPS JSON: got %s\nwant %s", got.errOut, want)
	}
}

// TestTimeout calls servers that accept the connection and send nothing.
func TestTimeout(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // never accepted: the kernel completes the connection
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for _, scheme := range []string{"https://", "grpcs://", "grpc://"} {
		server := scheme + listener.Addr().String()
		got := hookgate(t, "", "call", "Discovery", "--server", server, "--timeout", "50ms")
		if want := "hookgate: call Discovery: server " + server + ": no answer within 50ms\n"; got.code != cmdline.ExitFailed || got.errOut != want {
			t.Errorf("got %d %s\nwant %s", got.code, got.errOut, want)
		}
	}
}
