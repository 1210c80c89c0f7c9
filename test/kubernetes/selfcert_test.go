// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/internal/network/selfcert"
)

// certified is a replica that makes its certificates.
type certified struct {
	*selfcert.Issuer
	dir string
}

// newCertified returns replicas in a namespace of the test, whose clock is behind by a duration.
func newCertified(t *testing.T, n int, behind *atomic.Int64) ([]certified, client.Client, string) {
	t.Helper()
	_, c := connect(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "selfcert-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	replicas := make([]certified, n)
	for i := range replicas {
		dir := t.TempDir()
		replicas[i] = certified{selfcert.New(selfcert.Config{
			Client: c, Namespace: namespace.Name, Logger: slog.New(slog.DiscardHandler),
			Serving: selfcert.Files{Dir: dir, Cert: certs.CertFile, Key: certs.KeyFile},
			Now:     func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) },
		}), dir}
	}
	return replicas, c, namespace.Name
}

// together makes all replicas look at their certificates at once.
func together(t *testing.T, replicas []certified) {
	t.Helper()
	var group sync.WaitGroup
	begin := make(chan struct{})
	for _, r := range replicas {
		group.Go(func() {
			<-begin
			if err := r.Start(t.Context()); err != nil || r.Warning() != "" {
				t.Error(err, r.Warning())
			}
		})
	}
	close(begin)
	group.Wait()
}

// shows returns the certificate of each replica, which must be the same one, of the CA in ca.crt of its Secret.
func shows(t *testing.T, replicas []certified, c client.Client, namespace string) *x509.Certificate {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "hookgate-serving-cert"}, secret); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	var first *x509.Certificate
	for _, r := range replicas {
		if err := r.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		pair, err := tls.LoadX509KeyPair(r.dir+"/tls.crt", r.dir+"/tls.key")
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = pair.Leaf
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "hookgate." + namespace + ".svc"}); err != nil || !first.Equal(pair.Leaf) {
			t.Errorf("%v; the same one: %v", err, first.Equal(pair.Leaf))
		}
	}
	return first
}

// TestReplicasAgreeOnCertificates holds that replicas which start at once, and find a renewal due at once, end with one
// CA and one certificate.
func TestReplicasAgreeOnCertificates(t *testing.T) {
	var behind atomic.Int64
	behind.Store(int64(70 * 24 * time.Hour))
	replicas, c, namespace := newCertified(t, 8, &behind)
	together(t, replicas)
	before := shows(t, replicas, c, namespace)
	behind.Store(0)
	together(t, replicas)
	after := shows(t, replicas, c, namespace)
	if after.Equal(before) || !after.NotAfter.After(before.NotAfter) {
		t.Errorf("the certificate until %s was not renewed: now until %s", before.NotAfter, after.NotAfter)
	}
	if after.AuthorityKeyId == nil || string(after.AuthorityKeyId) != string(before.AuthorityKeyId) {
		t.Error("the renewal has another CA")
	}
}

// TestRenewalFailsNoCall holds that callers connect all the time while servers that run get renewed certificates: those
// who trust what was trusted before, and those who read the bundle anew.
func TestRenewalFailsNoCall(t *testing.T) {
	var behind atomic.Int64
	behind.Store(int64(7 * 365 * 24 * time.Hour)) // the CA is due, too
	replicas, c, namespace := newCertified(t, 2, &behind)
	together(t, replicas)
	behind.Store(int64(89 * 24 * time.Hour))
	together(t, replicas)
	before := shows(t, replicas, c, namespace)

	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	addresses := make([]string, len(replicas))
	for i, r := range replicas {
		served, err := certs.OpenServer(r.dir, certs.Settings{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		listener, err := tls.Listen("tcp", "127.0.0.1:0", served.TLSOrToken())
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = listener.Addr().String()
		group.Go(func() { _ = served.Run(ctx) })
		group.Go(func() { accept(listener) })
		context.AfterFunc(ctx, func() { _ = listener.Close() })
	}
	defer group.Wait()
	defer stop()

	trusted := func() *x509.CertPool {
		secret := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "hookgate-serving-cert"}, secret); err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(secret.Data["ca.crt"])
		return roots
	}
	old := trusted()
	renewed := func() bool { // on all replicas, without a failed call
		all := true
		for _, address := range addresses {
			for _, roots := range []*x509.CertPool{old, trusted()} {
				conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "hookgate." + namespace + ".svc"})
				if err != nil {
					t.Errorf("call: %v", err)
					continue
				}
				all = all && !conn.ConnectionState().PeerCertificates[0].Equal(before)
				_ = conn.Close()
			}
		}
		return all
	}
	if renewed() {
		t.Fatal("the certificate is renewed before it is due")
	}
	behind.Store(0)
	if err := replicas[0].Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	renewed() // the other one still shows what it had
	if err := replicas[1].Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all show the renewed certificate", func() (string, bool) { return "", renewed() })
}

// accept shakes hands with those who connect.
func accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
	}
}
