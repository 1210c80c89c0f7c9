// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/cloudinit"
	kubeadmtypes "sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types/upstream"
	"sigs.k8s.io/cluster-api/util/secret"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

const (
	version = "v1.36.3"
	// instanceID is what kubeadm templates of a provider write for the kubelet.
	instanceID = "fake:///{{ ds.meta_data.instance_id }}"
	token      = "abcdef.0123456789abcdef"
	// patience bounds every wait for a state.
	patience = 2 * time.Minute
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	log.SetOutput(io.Discard) // the API servers are noisy
	os.Exit(m.Run())
}

// fixture is a cloud behind its API, with one network.
type fixture struct {
	*testing.T

	cloud *Cloud
	*api.Client

	network      api.Network
	certificates secret.Certificates
	// handed has the certificates that join data has in place of the cluster's, if any.
	handed  secret.Certificates
	version semver.Version
}

// generated has the certificates of a cluster. Keys are slow to make, so all clusters have the same.
var generated = sync.OnceValue(newCertificates)

// newCertificates returns certificates, as Cluster API makes them for a cluster.
func newCertificates() secret.Certificates {
	certificates := secret.NewCertificatesForInitialControlPlane(nil)
	if err := certificates.Generate(); err != nil {
		panic(err)
	}
	return certificates
}

// newFixture starts a cloud with a network that has the key net.
func newFixture(t *testing.T, config Config) *fixture {
	t.Helper()
	fake, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(fake)
	t.Cleanup(func() {
		fake.mu.Lock()
		fake.faults.clear() // or the server waits for requests that hang
		fake.mu.Unlock()
		server.Close()
		if err := fake.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &fixture{
		T: t, cloud: fake, Client: &api.Client{URL: server.URL, Token: config.Token},
		certificates: generated(), version: semver.MustParse(version[1:]),
	}
	w.must(http.MethodPut, "/networks/net", api.NetworkSpec{}, nil)
	w.wait("the network runs", func() bool {
		w.must(http.MethodGet, "/networks/net", nil, &w.network)
		return w.network.State == api.Running
	})
	return w
}

// must calls the cloud and fails the test on an error.
func (w *fixture) must(method, path string, body, result any) {
	w.Helper()
	if err := w.Do(w.Context(), method, path, body, result); err != nil {
		w.Fatalf("%s %s: %v", method, path, err)
	}
}

// refused calls the cloud and fails the test unless the answer is an error with this reason, and its status.
func (w *fixture) refused(reason, method, path string, body any) {
	w.Helper()
	err := w.Do(w.Context(), method, path, body, nil)
	failure := &api.Error{}
	if !errors.As(err, &failure) || failure.Reason != reason || failure.Status != statuses[reason] {
		w.Fatalf("%s %s: %d, %v; want %s", method, path, failure.Status, err, reason)
	}
}

// wait fails the test unless done becomes true soon.
func (w *fixture) wait(what string, done func() bool) {
	w.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("waited %s: %s", patience, what)
		}
	}
}

// machine returns a machine.
func (w *fixture) machine(id string) api.Machine {
	w.Helper()
	var m api.Machine
	w.must(http.MethodGet, "/machines/"+id, nil, &m)
	return m
}

// waitMachine returns a machine once it has this state.
func (w *fixture) waitMachine(id, state string) api.Machine {
	w.Helper()
	var m api.Machine
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		m = w.machine(id)
		switch {
		case m.State == state:
			return m
		case m.State == api.Failed || time.Now().After(deadline):
			w.Fatalf("machine %s is %s, not %s: %s %s", id, m.State, state, m.Reason, m.Message)
		}
	}
}

// gone waits until there is no such thing.
func (w *fixture) gone(path string) {
	w.Helper()
	w.wait(path+" is gone", func() bool {
		failure := &api.Error{}
		return errors.As(w.Do(w.Context(), http.MethodGet, path, nil, nil), &failure) && failure.Status == http.StatusNotFound
	})
}

// counts returns what there is and was.
func (w *fixture) counts() api.Counts {
	w.Helper()
	var counts api.Counts
	w.must(http.MethodGet, "/counts", nil, &counts)
	return counts
}

// endpoint returns where the API server is.
func (w *fixture) endpoint() string {
	return fmt.Sprintf("%s:%d", w.network.Endpoint.Host, w.network.Endpoint.Port)
}

// registration returns what Cluster API's templates say about the kubelet.
func registration() bootstrapv1.NodeRegistrationOptions {
	id := instanceID
	return bootstrapv1.NodeRegistrationOptions{
		Name:             "{{ ds.meta_data.local_hostname }}",
		KubeletExtraArgs: []bootstrapv1.Arg{{Name: "provider-id", Value: &id}},
	}
}

// initData returns the bootstrap data of a first control plane machine, as Cluster API's own code writes it.
func (w *fixture) initData() *api.Bootstrap {
	w.Helper()
	additional := &upstream.AdditionalData{KubernetesVersion: new("v" + w.version.String()), ClusterName: new("one")}
	cluster, err := kubeadmtypes.MarshalClusterConfigurationForVersion(
		&bootstrapv1.ClusterConfiguration{ControlPlaneEndpoint: w.endpoint()}, w.version, additional)
	if err != nil {
		w.Fatal(err)
	}
	own, err := kubeadmtypes.MarshalInitConfigurationForVersion(
		&bootstrapv1.InitConfiguration{NodeRegistration: registration()}, w.version)
	if err != nil {
		w.Fatal(err)
	}
	data, err := cloudinit.NewInitControlPlane(&cloudinit.ControlPlaneInput{
		BaseUserData:         cloudinit.BaseUserData{KubernetesVersion: w.version},
		Certificates:         w.certificates,
		ClusterConfiguration: cluster,
		InitConfiguration:    own,
	})
	if err != nil {
		w.Fatal(err)
	}
	return &api.Bootstrap{Data: data, Format: formatCloudConfig}
}

// joinConfiguration returns how a machine joins, with this token.
func (w *fixture) joinConfiguration(token string) *bootstrapv1.JoinConfiguration {
	w.Helper()
	ca, err := readAuthority(w.files(), clusterAuthority)
	if err != nil {
		w.Fatal(err)
	}
	return &bootstrapv1.JoinConfiguration{
		NodeRegistration: registration(),
		Discovery: bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{
			Token: token, APIServerEndpoint: w.endpoint(), CACertHashes: []string{ca.hash()},
		}},
	}
}

// files returns the certificates as files.
func (w *fixture) files() map[string][]byte {
	files := map[string][]byte{}
	for _, file := range w.certificates.AsFiles() {
		files[file.Path] = []byte(file.Content)
	}
	return files
}

// controlPlaneData returns the bootstrap data of a control plane machine that joins.
func (w *fixture) controlPlaneData(token string) *api.Bootstrap {
	w.Helper()
	configuration := w.joinConfiguration(token)
	configuration.ControlPlane = &bootstrapv1.JoinControlPlane{}
	text, err := kubeadmtypes.MarshalJoinConfigurationForVersion(configuration, w.version)
	if err != nil {
		w.Fatal(err)
	}
	certificates := w.certificates
	if w.handed != nil {
		certificates = w.handed
	}
	data, err := cloudinit.NewJoinControlPlane(&cloudinit.ControlPlaneJoinInput{
		BaseUserData: cloudinit.BaseUserData{KubernetesVersion: w.version}, Certificates: certificates,
		BootstrapToken: token, JoinConfiguration: text,
	})
	if err != nil {
		w.Fatal(err)
	}
	return &api.Bootstrap{Data: data, Format: formatCloudConfig}
}

// workerData returns the bootstrap data of a worker; change, if any, changes how it joins.
func (w *fixture) workerData(token string, change func(*bootstrapv1.JoinConfiguration)) *api.Bootstrap {
	w.Helper()
	configuration := w.joinConfiguration(token)
	configuration.NodeRegistration.Taints = &[]corev1.Taint{clusterv1.NodeUninitializedTaint}
	if change != nil {
		change(configuration)
	}
	text, err := kubeadmtypes.MarshalJoinConfigurationForVersion(configuration, w.version)
	if err != nil {
		w.Fatal(err)
	}
	data, err := cloudinit.NewNode(&cloudinit.NodeInput{
		BaseUserData: cloudinit.BaseUserData{KubernetesVersion: w.version}, JoinConfiguration: text,
	})
	if err != nil {
		w.Fatal(err)
	}
	return &api.Bootstrap{Data: data, Format: formatCloudConfig}
}

// startCluster makes the first control plane machine, cp-0, and the token.
func (w *fixture) startCluster() kubernetes.Interface {
	w.Helper()
	w.must(http.MethodPut, "/machines/key-cp-0", api.MachineSpec{
		Network: "net", Name: "cp-0", ControlPlane: true, Version: "v" + w.version.String(), Bootstrap: w.initData(),
	}, nil)
	w.waitMachine("key-cp-0", api.Running)
	clients := kubernetes.NewForConfigOrDie(w.access())
	w.createToken(clients, token, time.Now().Add(time.Hour))
	return clients
}

// access returns how the API server is reached.
func (w *fixture) access() *rest.Config {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, w.URL+"/networks/net/kubeconfig", nil)
	if err != nil {
		w.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		w.Fatalf("%v: %s", err, content)
	}
	return config
}

// createToken makes a bootstrap token, as Cluster API's bootstrap provider does.
func (w *fixture) createToken(clients kubernetes.Interface, token string, expires time.Time) {
	w.Helper()
	id, tokenSecret, _ := strings.Cut(token, ".")
	_, err := clients.CoreV1().Secrets(metav1.NamespaceSystem).Create(w.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id, Namespace: metav1.NamespaceSystem},
		Type:       corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			"token-id": []byte(id), "token-secret": []byte(tokenSecret), "usage-bootstrap-authentication": []byte("true"),
			"expiration": []byte(expires.UTC().Format(time.RFC3339)),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

// worker returns a worker that joins with the token.
func (w *fixture) worker(name string) api.MachineSpec {
	return api.MachineSpec{Network: "net", Name: name, Version: version, Bootstrap: w.workerData(token, nil)}
}

// node returns a Node.
func (w *fixture) node(clients kubernetes.Interface, name string) *corev1.Node {
	w.Helper()
	node, err := clients.CoreV1().Nodes().Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return node
}

// encode returns text in base64.
func encode(text string) string {
	return base64.StdEncoding.EncodeToString([]byte(text))
}

// within returns a context for a call that must not take long.
func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}
