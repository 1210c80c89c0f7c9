// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunneltest is an API server whose Pods are ports on this machine, for tests: it lists Pods, and forwards
// ports with the protocol of the kubelet, over SPDY and over WebSockets.
package tunneltest

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

const protocol = "portforward.k8s.io"

// Token is the token of the kubeconfig. It opens nothing.
const Token = "kubeconfig-token" //nolint:gosec // as above

// Server is the API server. Its fields may be changed until the first request, and Pods afterwards with SetPods.
type Server struct {
	// Ports maps the ports of Pods to addresses on this machine, and so does PortsOf those of one Pod, by its name. Other
	// ports refuse connections.
	Ports   map[string]string
	PortsOf map[string]map[string]string
	// Tokens has the token that each service account gets, by namespace/name.
	Tokens map[string]string
	// Logs is the log of every Pod.
	Logs string
	// Lists has the items of other resources, by the path of the list.
	Lists map[string][]any
	// NoWebSockets refuses them, as API servers before 1.31 do.
	NoWebSockets bool
	// Forbid are resources that the user may not use.
	Forbid map[string]bool
	// Stall makes forwarding hang before the upgrade, until the test has ended.
	Stall bool

	http *httptest.Server
	done chan struct{}

	mu       sync.Mutex
	pods     []corev1.Pod
	forwards int
	open     []httpstream.Connection
}

// New starts a server. It stops with the test.
func New(t *testing.T, pods ...corev1.Pod) *Server {
	t.Helper()
	s := &Server{pods: pods, Ports: map[string]string{}, done: make(chan struct{})}
	s.http = httptest.NewTLSServer(s) // a client sends a token over TLS only
	t.Cleanup(func() {
		close(s.done)
		s.Cut()
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Pod returns a Pod of a gateway.
func Pod(namespace, name string, ready bool, age time.Duration, args ...string) corev1.Pod {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": "hookgate"},
			CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Args: append([]string{"serve"}, args...)}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
	}
}

// Kubeconfig writes a kubeconfig with the contexts, which all are the server, and returns its path. The first is the
// current one.
func (s *Server) Kubeconfig(t *testing.T, contexts ...string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server: s.http.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{
			Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw,
		}),
	}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: Token}
	for i, name := range contexts {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
		if i == 0 {
			config.CurrentContext = name
		}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	data, err := clientcmd.Write(*config)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// SetPods replaces the Pods.
func (s *Server) SetPods(pods ...corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods = pods
}

// Cut ends all that is forwarded, as the end of a Pod does.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		_ = c.Close()
	}
	s.open = nil
}

// Forwards returns how many times forwarding has begun.
func (s *Server) Forwards() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forwards
}

// Kubelet starts a server that forwards ports as a kubelet does, to addresses on this machine, and returns its port. It
// stops with the test.
func Kubelet(t *testing.T, ports map[string]string) int {
	t.Helper()
	s := &Server{Ports: ports}
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/portForward/") {
			http.NotFound(w, r)
			return
		}
		s.forwardSPDY(w, r, "")
	}))
	t.Cleanup(func() {
		s.Cut()
		kubelet.CloseClientConnections()
		kubelet.Close()
	})
	address, _ := kubelet.Listener.Addr().(*net.TCPAddr) // of an httptest.Server
	return address.Port
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // api v1 namespaces N pods NAME SUBRESOURCE
	if len(parts) == 7 && parts[4] == "serviceaccounts" && parts[6] == "token" {
		s.token(w, parts[3], parts[5])
		return
	}
	if len(parts) < 5 || parts[2] != "namespaces" || parts[4] != "pods" {
		items, ok := s.Lists[r.URL.Path]
		if !ok {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
			return
		}
		write(w, http.StatusOK, map[string]any{"kind": "List", "apiVersion": "v1", "items": items})
		return
	}
	namespace, name, sub := parts[3], "", ""
	if len(parts) > 5 {
		name = parts[5]
	}
	if len(parts) > 6 {
		sub = "/" + parts[6]
	}
	if s.Forbid["pods"+sub] {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(`pods %q is forbidden: User "u" cannot `+
			`create resource "pods%s" in API group "" in the namespace %q`, name, sub, namespace))
		return
	}
	found := s.find(namespace, name, r.URL.Query().Get("labelSelector"))
	switch {
	case name == "":
		write(w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: found})
	case len(found) == 0:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("pods %q not found", name))
	case sub == "/portforward":
		s.forward(w, r, name)
	case sub == "/log":
		_, _ = io.WriteString(w, s.Logs)
	default:
		found[0].TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
		write(w, http.StatusOK, found[0])
	}
}

func (s *Server) find(namespace, name, selector string) []corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []corev1.Pod{}
	for _, p := range s.pods {
		if p.Namespace == namespace && (name == "" || p.Name == name) &&
			(selector == "" || selector == "app.kubernetes.io/name="+p.Labels["app.kubernetes.io/name"]) {
			found = append(found, p)
		}
	}
	return found
}

// token answers a TokenRequest.
func (s *Server) token(w http.ResponseWriter, namespace, account string) {
	token, ok := s.Tokens[namespace+"/"+account]
	switch {
	case s.Forbid["serviceaccounts/token"]:
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(`serviceaccounts %q is forbidden: `+
			`User "u" cannot create resource "serviceaccounts/token" in API group "" in the namespace %q`, account, namespace))
	case !ok:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("serviceaccounts %q not found", account))
	default:
		write(w, http.StatusCreated, authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{Kind: "TokenRequest", APIVersion: "authentication.k8s.io/v1"},
			Status: authenticationv1.TokenRequestStatus{
				Token: token, ExpirationTimestamp: metav1.NewTime(time.Now().Add(10 * time.Minute)),
			},
		})
	}
}

func (s *Server) forward(w http.ResponseWriter, r *http.Request, pod string) {
	if s.Stall {
		select {
		case <-s.done:
		case <-r.Context().Done():
		}
		return
	}
	overSPDY := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.forwardSPDY(w, r, pod) })
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		if s.NoWebSockets {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "Upgrade request required")
			return
		}
		proxy.NewTunnelingHandler(overSPDY).ServeHTTP(w, r)
		return
	}
	overSPDY(w, r)
}

func (s *Server) forwardSPDY(w http.ResponseWriter, r *http.Request, pod string) {
	ports := s.Ports
	if of, ok := s.PortsOf[pod]; ok {
		ports = of
	}
	if _, err := httpstream.Handshake(r, w, []string{protocol}); err != nil {
		return
	}
	var mu sync.Mutex
	reports := map[string]httpstream.Stream{}
	streams := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		mu.Lock()
		defer mu.Unlock()
		id := stream.Headers().Get(corev1.PortForwardRequestIDHeader)
		if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			reports[id] = stream
			return nil
		}
		go carry(ports, stream, reports[id])
		return nil
	})
	if streams == nil {
		return
	}
	s.mu.Lock()
	s.forwards++
	s.open = append(s.open, streams)
	s.mu.Unlock()
	<-streams.CloseChan()
}

// carry connects a stream to the port that it names.
func carry(ports map[string]string, stream, report httpstream.Stream) {
	defer func() { _ = stream.Close() }()
	defer func() { _ = report.Close() }()
	port := stream.Headers().Get(corev1.PortHeader)
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", ports[port])
	if ports[port] == "" || err != nil {
		_, _ = fmt.Fprintf(report, "failed to connect to localhost:%s inside namespace, IPv4: dial tcp4 127.0.0.1:%s: "+
			"connect: connection refused", port, port)
		return
	}
	defer func() { _ = conn.Close() }()
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(stream, conn)
}

func write(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	write(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	})
}
