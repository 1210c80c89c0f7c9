// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

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

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
)

// discover calls Discovery with the flags and checks how it fails.
func discover(t *testing.T, reason, want string, flags ...string) {
	t.Helper()
	got := commandtest.Hookgate(t, "", append([]string{"call", "Discovery", "--timeout", "20s"}, flags...)...)
	if got.Code != cmdline.ExitFailed || got.Out != "" || got.ErrOut != "hookgate: call Discovery: "+want+"\n" {
		t.Errorf("%s:\n got %d %s%s\nwant %s", reason, got.Code, got.Out, got.ErrOut, want)
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
	f := commandtest.NewFakeServer(t, nil)
	other := commandtest.NewFakeServer(t, nil)
	for _, server := range []string{f.HTTP.URL, "grpcs://" + f.GRPCS} {
		discover(t, "the system does not know the CA",
			"server "+server+": certificate not trusted: signed by an unknown authority\nGive the CA that signed it: --ca FILE.",
			"--server", server)
		discover(t, "the file has another CA",
			"server "+server+": certificate not trusted: signed by an unknown authority\nGive the CA that signed it: --ca FILE, which is not "+other.CAFile+".",
			"--server", server, "--ca", other.CAFile)
	}
}

func TestExpiredCertificate(t *testing.T) {
	pair, err := devcert.New(time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	f := commandtest.NewFakeServerWith(t, nil, pair, func(*tls.Config) {})
	for _, server := range []string{f.HTTP.URL, "grpcs://" + f.GRPCS} {
		got := commandtest.Hookgate(t, "", "call", "Discovery", "--server", server, "--ca", f.CAFile)
		if want := "server " + server + ": certificate not trusted: expired or not yet valid\nx509: certificate has expired"; !strings.Contains(got.ErrOut, want) {
			t.Errorf("got %s\nwant %s", got.ErrOut, want)
		}
	}
}

func TestCertificateForAnotherName(t *testing.T) {
	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.EnableHTTP2 = true
	tlsServer.StartTLS() // with a certificate for example.com and the loopback addresses
	defer tlsServer.Close()
	ca := commandtest.WriteFile(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlsServer.Certificate().Raw})))
	_, port, err := net.SplitHostPort(tlsServer.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range []string{"https://localhost:" + port, "grpcs://localhost:" + port} {
		got := commandtest.Hookgate(t, "", "call", "Discovery", "--server", server, "--ca", ca)
		if want := "server " + server + ": certificate not trusted: not valid for \"localhost\"\nx509: certificate is valid for example.com"; !strings.Contains(got.ErrOut, want) {
			t.Errorf("got %s\nwant %s", got.ErrOut, want)
		}
	}
}

func TestClientCertificate(t *testing.T) {
	dir := t.TempDir()
	pair := certificates.In(t, dir)
	f := commandtest.NewFakeServerWith(t, map[string]commandtest.FakeReply{"Discovery": {Body: commandtest.Reply("Discovery", `"status":"Success","handlers":[]`)}}, pair, func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, pair.ClientTLS().RootCAs
	})
	for _, server := range []string{f.HTTP.URL, "grpcs://" + f.GRPCS} {
		discover(t, "the server wants a certificate", "server "+server+": the server asked for a client certificate, and ended the connection without one\nShow one: --cert FILE and --key FILE.",
			"--server", server, "--ca", f.CAFile)
		got := commandtest.Hookgate(t, "", "call", "Discovery", "--server", server, "--ca", f.CAFile,
			"--cert", filepath.Join(dir, devcert.CertFile), "--key", filepath.Join(dir, devcert.KeyFile))
		if got.Code != cmdline.ExitDone {
			t.Errorf("%s: with a certificate: %+v", server, got)
		}
	}
}

// noTLS returns the end of the message about a server without TLS.
func noTLS(address string) string {
	return "the server does not speak TLS\nFor gRPC without TLS, use --server grpc://" + address + ". Or is the port for metrics or health?"
}

// TestWrongProtocol mixes up the addresses of protocols.
func TestWrongProtocol(t *testing.T) {
	f := commandtest.NewFakeServer(t, nil)
	discover(t, "HTTPS to a server without TLS", "server https://"+f.GRPC+": "+noTLS(f.GRPC),
		"--server", "https://"+f.GRPC)
	discover(t, "gRPC with TLS to a server without", "server grpcs://"+f.GRPC+": "+noTLS(f.GRPC),
		"--server", "grpcs://"+f.GRPC)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	server := strings.Replace(plain.URL, "http:", "https:", 1)
	discover(t, "HTTPS to a server of plain HTTP", "server "+server+": "+noTLS(strings.TrimPrefix(server, "https://")), "--server", server)
	got := commandtest.Hookgate(t, "", "call", "Discovery", "--server", "grpc://"+f.GRPCS)
	if want := ": the server does not speak gRPC without TLS\nWith TLS, use --server grpcs://" + f.GRPCS + "."; !strings.Contains(got.ErrOut, want) {
		t.Errorf("gRPC without TLS to a server with: got %s\nwant %s", got.ErrOut, want)
	}
	got = commandtest.Hookgate(t, "", "call", "Discovery", "--server", "https://"+f.GRPCS, "--ca", f.CAFile)
	if want := "Call it with --server grpcs://" + f.GRPCS + "."; !strings.Contains(got.ErrOut, want) {
		t.Errorf("HTTPS JSON to a gRPC server: got %s\nwant %s", got.ErrOut, want)
	}
	got = commandtest.Hookgate(t, "", "call", "Discovery", "--server", strings.Replace(f.HTTP.URL, "https", "grpcs", 1), "--ca", f.CAFile)
	if want := ": the server does not speak gRPC\nDoes it speak JSON over HTTPS? Then use --server " + f.HTTP.URL + ".\n"; !strings.Contains(got.ErrOut, want) {
		t.Errorf("gRPC to a server of HTTPS JSON: got %s\nwant %s", got.ErrOut, want)
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
		got := commandtest.Hookgate(t, "", "call", "Discovery", "--server", server, "--timeout", "50ms")
		if want := "hookgate: call Discovery: server " + server + ": no answer within 50ms\n"; got.Code != cmdline.ExitFailed || got.ErrOut != want {
			t.Errorf("got %d %s\nwant %s", got.Code, got.ErrOut, want)
		}
	}
}
