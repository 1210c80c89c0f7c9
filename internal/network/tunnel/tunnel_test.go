// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hookgate/hookgate/internal/network/tunnel"
	"github.com/hookgate/hookgate/internal/network/tunnel/tunneltest"
)

var gateway = tunnel.Target{Namespace: "hookgate-system", Selector: "app.kubernetes.io/name=hookgate"}

func config(t *testing.T, s *tunneltest.Server) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig(t, "management"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func open(t *testing.T, s *tunneltest.Server, target tunnel.Target) *tunnel.Tunnel {
	t.Helper()
	tu, err := tunnel.Open(t.Context(), config(t, s), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tu.Close)
	return tu
}

// echo answers each connection with what it receives.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

// TestTunnel carries many bytes both ways on several connections at once, over both protocols.
func TestTunnel(t *testing.T) {
	for name, noWebSockets := range map[string]bool{"WebSockets": false, "SPDY": true} {
		t.Run(name, func(t *testing.T) {
			s := tunneltest.New(t, tunneltest.Pod("hookgate-system", "a", true, time.Hour))
			s.NoWebSockets, s.Ports["8443"] = noWebSockets, echo(t)
			tu := open(t, s, gateway)
			errs := make(chan error)
			for range 3 {
				go func() { errs <- roundTrip(t.Context(), tu) }()
			}
			for range 3 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			if n := s.Forwards(); n != 1 {
				t.Errorf("forwarding has begun %d times, want once for all connections", n)
			}
		})
	}
}

func roundTrip(ctx context.Context, tu *tunnel.Tunnel) error {
	conn, err := tu.DialContext(ctx, "tcp", "any.host:8443")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	sent := make([]byte, 1<<20)
	_, _ = rand.Read(sent)
	go func() { _, _ = conn.Write(sent) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, got); err != nil {
		return err
	}
	if !bytes.Equal(sent, got) {
		return errors.New("the bytes differ")
	}
	return nil
}

// TestDeadline checks that a connection keeps deadlines, which streams do not have.
func TestDeadline(t *testing.T) {
	s := tunneltest.New(t, tunneltest.Pod("hookgate-system", "a", true, time.Hour))
	s.Ports["8443"] = echo(t)
	conn, err := open(t, s, gateway).DialContext(t.Context(), "tcp", "h:8443")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := conn.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v, want a timeout", err)
	}
}

// TestPods checks which Pod is meant.
func TestPods(t *testing.T) {
	ending := tunneltest.Pod("hookgate-system", "ending", true, 9*time.Hour)
	ending.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	other := tunneltest.Pod("hookgate-system", "other", true, 9*time.Hour)
	other.Labels["app.kubernetes.io/name"] = "other"
	s := tunneltest.New(t, ending, other,
		tunneltest.Pod("elsewhere", "elsewhere", true, 9*time.Hour),
		tunneltest.Pod("hookgate-system", "unready", false, 9*time.Hour),
		tunneltest.Pod("hookgate-system", "young", true, time.Minute),
		tunneltest.Pod("hookgate-system", "old", true, time.Hour),
	)
	if got := open(t, s, gateway).Pod().Name; got != "old" {
		t.Errorf("got Pod %s, want the oldest that is ready", got)
	}
	if got := open(t, s, tunnel.Target{Namespace: "hookgate-system", Pod: "other"}).Pod().Name; got != "other" {
		t.Errorf("got Pod %s, want the named one, whatever its labels", got)
	}
}

// TestErrors checks that each error says what to do.
func TestErrors(t *testing.T) {
	ready := tunneltest.Pod("hookgate-system", "a", true, time.Hour)
	unready := tunneltest.Pod("hookgate-system", "b", false, time.Hour)
	for name, tt := range map[string]struct {
		pods   []corev1.Pod
		change func(*tunneltest.Server)
		target tunnel.Target
		want   []string
	}{
		"NoPod": {nil, nil, gateway, []string{
			"namespace hookgate-system has no gateway Pod", "--gateway NAMESPACE chooses another namespace"}},
		"NoReadyPod": {[]corev1.Pod{unready}, nil, gateway, []string{
			"no gateway Pod that is ready", "kubectl -n hookgate-system get pods -l app.kubernetes.io/name=hookgate"}},
		"NamedIsUnready": {[]corev1.Pod{unready}, nil, tunnel.Target{Namespace: "hookgate-system", Pod: "b"}, []string{
			"Pod hookgate-system/b is not ready", "describe pod b"}},
		"NamedIsMissing": {nil, nil, tunnel.Target{Namespace: "hookgate-system", Pod: "b"}, []string{
			`pods "b" not found`, "kubectl -n hookgate-system get pods"}},
		"MayNotList": {[]corev1.Pod{ready}, func(s *tunneltest.Server) { s.Forbid = map[string]bool{"pods": true} }, gateway,
			[]string{"you may not list pods in namespace hookgate-system", "get and create of pods/portforward"}},
		"MayNotForward": {[]corev1.Pod{ready},
			func(s *tunneltest.Server) { s.Forbid = map[string]bool{"pods/portforward": true} }, gateway,
			[]string{"you may not create pods/portforward in namespace hookgate-system", "get and create of pods/portforward"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tunneltest.New(t, tt.pods...)
			if tt.change != nil {
				tt.change(s)
			}
			_, err := tunnel.Open(t.Context(), config(t, s), tt.target)
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v\nwant %s", err, want)
				}
			}
		})
	}
}

// TestTimeToConnect checks that an API server that never answers is not waited for without a limit.
func TestTimeToConnect(t *testing.T) {
	s := tunneltest.New(t, tunneltest.Pod("hookgate-system", "a", true, time.Hour))
	s.Stall = true
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := tunnel.Open(ctx, config(t, s), gateway)
	if err == nil || !strings.Contains(err.Error(), "the API server does not answer in time") {
		t.Errorf("got %v", err)
	}
}

// TestNothingListens checks that the kubelet's report reaches the caller of HTTP.
func TestNothingListens(t *testing.T) {
	s := tunneltest.New(t, tunneltest.Pod("hookgate-system", "a", true, time.Hour))
	tu := open(t, s, gateway)
	client := &http.Client{Transport: &http.Transport{DialContext: tu.DialContext}}
	response, err := client.Get("http://127.0.0.1:1/")
	if err == nil {
		_ = response.Body.Close()
	}
	var failed *tunnel.Error
	if !errors.As(err, &failed) || failed.What != "cluster: nothing listens on port 1 of Pod a" || failed.Hint == "" {
		t.Errorf("got %v", err)
	}
}

// TestReconnects checks that the next connection leads to another Pod when the first has gone.
func TestReconnects(t *testing.T) {
	s := tunneltest.New(t, tunneltest.Pod("hookgate-system", "a", true, time.Hour))
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	s.Ports["80"] = server.Listener.Addr().String()
	tu := open(t, s, gateway)
	conn, err := tu.DialContext(t.Context(), "tcp", "h:80")
	if err != nil {
		t.Fatal(err)
	}
	s.SetPods(tunneltest.Pod("hookgate-system", "b", true, time.Hour))
	s.Cut()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Fatal("the connection has outlived the Pod")
	}
	client := &http.Client{Transport: &http.Transport{DialContext: tu.DialContext, DisableKeepAlives: true}}
	response, err := client.Get("http://h:80/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got := tu.Pod().Name; got != "b" {
		t.Errorf("connected to Pod %s, want b", got)
	}
}

// TestMaxConnections checks the limit, and that a connection that ends makes room.
func TestMaxConnections(t *testing.T) {
	s := tunneltest.New(t, tunneltest.Pod("hookgate-system", "a", true, time.Hour))
	s.Ports["80"] = echo(t)
	tu := open(t, s, gateway)
	var last net.Conn
	for range tunnel.MaxConnections {
		c, err := tu.DialContext(t.Context(), "tcp", "h:80")
		if err != nil {
			t.Fatal(err)
		}
		last = c
	}
	if _, err := tu.DialContext(t.Context(), "tcp", "h:80"); err == nil ||
		err.Error() != "there are 64 connections to the Pod already" {
		t.Fatalf("one beyond the limit: %v", err)
	}
	_ = last.Close()
	for {
		c, err := tu.DialContext(t.Context(), "tcp", "h:80")
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("no place became free")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
