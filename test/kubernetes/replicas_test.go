// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// gatewayVariable is the environment variable with the path of the gateway's program.
const gatewayVariable = "HOOKGATE_BIN"

// TestHookgateGroup: the gateway's own group has the same schema, and replicas of the other group ignore its
// ExtensionConfigs.
func TestHookgateGroup(t *testing.T) {
	core := start(t, nil)
	r := start(t, func(c *controllers.Config) { c.Group = controllers.HookgateGroup })
	x := newExtension(t, "a")
	typed := newConfig(t, "own-group", x)
	config := &unstructured.Unstructured{}
	config.SetGroupVersionKind(schema.GroupVersionKind{Group: controllers.HookgateGroup, Version: "v1beta2",
		Kind: "ExtensionConfig"})
	config.SetName(typed.Name)
	config.SetLabels(typed.Labels)
	config.Object["spec"] = map[string]any{"clientConfig": map[string]any{"url": x.URL,
		"caBundle": base64.StdEncoding.EncodeToString(x.ca())}}
	create(t, r.client, config)
	r.serves(t, "a.own-group "+x.URL)
	eventually(t, "status of the object in the other group", func() (string, bool) {
		if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(config), config); err != nil {
			t.Fatal(err)
		}
		handlers, _, _ := unstructured.NestedSlice(config.Object, "status", "handlers")
		return fmt.Sprint(handlers), len(handlers) == 1
	})
	if served := core.served(); len(served) != 0 {
		t.Errorf("the gateway of the other group serves %s", served)
	}
}

// road is a proxy to the API server that can be closed.
type road struct {
	listener net.Listener
	target   string
	closed   atomic.Bool
	mu       sync.Mutex
	open     map[net.Conn]bool
}

func newRoad(t testing.TB, target string) *road {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &road{listener: listener, target: target, open: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			if r.closed.Load() {
				in.Close()
				continue
			}
			running.Go(func() { r.carry(in) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		r.shut()
		running.Wait()
	})
	return r
}

func (r *road) carry(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer out.Close()
	r.mu.Lock()
	r.open[in] = true
	r.mu.Unlock()
	go func() {
		_, _ = io.Copy(out, in) // ends when either side does
		out.Close()
	}()
	_, _ = io.Copy(in, out)
	r.mu.Lock()
	delete(r.open, in)
	r.mu.Unlock()
}

// shut cuts all connections and lets none through.
func (r *road) shut() {
	r.closed.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		c.Close()
	}
}

func (r *road) reopen() { r.closed.Store(false) }

// gateway is a running gateway process.
type gateway struct {
	cmd    *exec.Cmd
	log    *process.Log
	done   chan struct{}
	https  string
	health string
}

// startGateway runs the gateway with the kubeconfig, and waits until it is ready.
func startGateway(t testing.TB, kubeconfig, certs string, flags ...string) *gateway {
	t.Helper()
	g := launchGateway(t, kubeconfig, certs, flags...)
	eventually(t, "the gateway is ready", func() (string, bool) {
		response, err := http.Get("http://" + g.health + "/readyz")
		if err != nil {
			return err.Error(), false
		}
		response.Body.Close()
		return response.Status, response.StatusCode == http.StatusOK
	})
	return g
}

// launchGateway runs the gateway with the kubeconfig, and waits until it listens.
func launchGateway(t testing.TB, kubeconfig, certs string, flags ...string) *gateway {
	t.Helper()
	g := runGateway(t, kubeconfig, certs, flags...)
	pattern := regexp.MustCompile(`serving https=(\S+) grpc=\S+ diagnostics=(\S+)\n`)
	eventually(t, "the gateway prints its addresses", func() (string, bool) {
		found := pattern.FindStringSubmatch(g.log.String())
		if found == nil {
			return g.log.String(), false
		}
		g.https, g.health = found[1], found[2]
		return "", true
	})
	return g
}

// runGateway runs the gateway with the kubeconfig.
func runGateway(t testing.TB, kubeconfig, certs string, flags ...string) *gateway {
	t.Helper()
	program := os.Getenv(gatewayVariable)
	if program == "" {
		t.Skipf("%s does not name a program: run `make test`, which builds it", gatewayVariable)
	}
	g := &gateway{log: &process.Log{}, done: make(chan struct{})}
	g.cmd = exec.Command(program, append([]string{"serve", "--kubeconfig", kubeconfig, "--cert-dir", certs,
		"--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0",
		"--watch-filter", filterOf(t), "--leader-elect", "--leader-elect-lease-duration", "10s",
		"--leader-elect-renew-deadline", "8s", "--leader-elect-retry-period", "500ms"}, flags...)...)
	g.cmd.Stdout, g.cmd.Stderr = g.log, g.log
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = g.cmd.Wait() // how it ended is in the log
		close(g.done)
	}()
	t.Cleanup(func() {
		g.kill()
		if t.Failed() {
			t.Logf("the gateway printed:\n%s", g.log)
		}
	})
	return g
}

// leads reports whether the gateway leads, according to its log.
func (g *gateway) leads() bool {
	log := g.log.String()
	return strings.LastIndex(log, "this replica leads") > strings.LastIndex(log, "this replica no longer leads")
}

// kill ends the process as a crash would.
func (g *gateway) kill() {
	_ = g.cmd.Process.Kill() // it may have ended already
	<-g.done
}

// load calls gateways until it is stopped, and records failures.
type load struct {
	client  *http.Client
	calls   atomic.Int64
	mu      sync.Mutex
	failed  []string
	stop    context.CancelFunc
	running sync.WaitGroup
}

func newLoad(ca []byte) *load {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &load{client: &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: patience,
	}}
}

// start calls the gateways, each as long as its returned flag is set: callers do not call a stopped gateway.
func (l *load) start(t testing.TB, gateways ...*gateway) []*atomic.Bool {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	in := make([]*atomic.Bool, len(gateways))
	for i, g := range gateways {
		in[i] = &atomic.Bool{}
		in[i].Store(true)
		l.running.Go(func() {
			pause := time.NewTicker(5 * time.Millisecond)
			defer pause.Stop()
			for in[i].Load() {
				if err := l.call(ctx, g); err != nil && ctx.Err() == nil && in[i].Load() {
					l.mu.Lock()
					l.failed = append(l.failed, err.Error())
					l.mu.Unlock()
				}
				select {
				case <-ctx.Done():
					return
				case <-pause.C:
				}
			}
		})
	}
	t.Cleanup(func() {
		stop()
		l.running.Wait()
		l.client.CloseIdleConnections()
	})
	return in
}

const request = `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest",` +
	`"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","namespace":"default"}}}`

func (l *load) call(ctx context.Context, g *gateway) error {
	url := "https://" + g.https + "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/a.fleet"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(request))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := l.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"status":"Success"`)) {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	l.calls.Add(1)
	return nil
}

// TestFleet runs three processes: the leader is killed under load, then the API server is unreachable for a minute. No
// call to a live process fails, another process leads, and all resume once the API server is back.
func TestFleet(t *testing.T) {
	_, c := connect(t)
	away := time.Minute
	if testing.Short() {
		away = 10 * time.Second
	}
	way := newRoad(t, apiServer.ControlPlane.APIServer.Address+":"+apiServer.ControlPlane.APIServer.Port)
	kubeconfig := writeKubeconfig(t, "https://"+way.listener.Addr().String())
	certs := t.TempDir()
	pair := certificates.In(t, certs)
	x := newExtension(t, "a")
	x.handlers[0].TimeoutSeconds = new(int32(30)) // no call fails, although the machine is busy
	create(t, c, newConfig(t, "fleet", x))
	fleet := make([]*gateway, 3)
	for i := range fleet {
		fleet[i] = startGateway(t, kubeconfig, certs, "--resync", "1s")
	}
	awaitCondition(t, c, "fleet", discoveredCondition, metav1.ConditionTrue, "")
	l := newLoad(pair.CAPEM)
	for i, g := range fleet {
		eventually(t, fmt.Sprintf("gateway %d serves", i), func() (string, bool) {
			err := l.call(t.Context(), g)
			return fmt.Sprint(err), err == nil
		})
	}
	in := l.start(t, fleet...)

	first := -1
	eventually(t, "a process says that it leads", func() (string, bool) {
		first = slices.IndexFunc(fleet, (*gateway).leads)
		return strconv.Itoa(first), first >= 0
	})
	holder := leader(t, c)
	in[first].Store(false)
	fleet[first].kill()
	killed := time.Now()
	eventually(t, "another leads", func() (string, bool) {
		now := leader(t, c)
		return now, now != "" && now != holder
	})
	t.Logf("another led %s after the leader was killed", time.Since(killed).Round(time.Millisecond))
	x.set(func(s *serverOf) { s.handlers = append(s.handlers, handler("b", "BeforeClusterCreate")) })
	eventually(t, "the new leader discovers", func() (string, bool) {
		n := len(get(t, c, "fleet").Status.Handlers)
		return strconv.Itoa(n), n == 2
	})

	before := l.calls.Load()
	way.shut()
	time.Sleep(away) // this is what is tested
	eventually(t, "calls are made while the API server is away", func() (string, bool) {
		n := l.calls.Load() - before
		return strconv.FormatInt(n, 10), n >= 100
	})
	for i, g := range fleet {
		if i == first {
			continue
		}
		select {
		case <-g.done:
			t.Errorf("gateway %d ended while the API server was away", i)
		default:
		}
	}
	way.reopen()
	x.set(func(s *serverOf) { s.handlers = append(s.handlers, handler("c", "BeforeClusterCreate")) })
	eventually(t, "discovery goes on when the API server is back", func() (string, bool) {
		n := len(get(t, c, "fleet").Status.Handlers)
		return strconv.Itoa(n), n == 3
	})
	l.stop()
	l.running.Wait()
	t.Logf("%d calls, %d of them while the API server was away for %s", l.calls.Load(), l.calls.Load()-before, away)
	if len(l.failed) > 0 {
		t.Errorf("%d calls failed; the first: %s", len(l.failed), l.failed[0])
	}
}

// leader returns the holder of the Lease of the test's fleet.
func leader(t testing.TB, c client.Client) string {
	t.Helper()
	// All gateways of tests have a watch filter, which is the end of the Lease's name.
	lease := &coordinationv1.Lease{}
	name := fmt.Sprintf("hookgate-leader-election-%s-%.4x", controllers.ClusterAPIGroup, sha256.Sum256([]byte(filterOf(t))))
	err := c.Get(context.Background(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, lease)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if holder := lease.Spec.HolderIdentity; holder != nil {
		return *holder
	}
	return ""
}

// writeKubeconfig writes a kubeconfig for the API server with server as its URL.
func writeKubeconfig(t testing.TB, server string) string {
	t.Helper()
	config, _ := connect(t)
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: config.CAData}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		Token: config.BearerToken}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}
