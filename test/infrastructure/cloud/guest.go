// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

// bootstrapToken is a token of kubeadm: an ID and a secret.
var bootstrapToken = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`)

// kubeadm runs what the bootstrap data of m says. With an error it returns a reason: JoinFailed if m may try again.
func (c *Cloud) kubeadm(ctx context.Context, m *machine) (string, error) {
	documents, err := kubeadmDocuments(m.data.config)
	if err != nil {
		return api.BootstrapFailed, err
	}
	if m.data.command == "init" {
		return api.BootstrapFailed, c.initialize(ctx, m, documents)
	}
	return c.join(ctx, m, documents)
}

// initialize is kubeadm init: it makes the cluster of the network.
func (c *Cloud) initialize(ctx context.Context, m *machine, documents map[string]string) error {
	var cluster clusterConfiguration
	var own initConfiguration
	if err := errors.Join(
		readDocument(documents, "ClusterConfiguration", &cluster),
		readDocument(documents, "InitConfiguration", &own),
	); err != nil {
		return err
	}
	cluster.raw = documents["ClusterConfiguration"]
	n := m.network
	switch {
	case !m.ControlPlane:
		return errors.New("kubeadm init on a machine that the load balancer does not have")
	case n.initialized:
		return errors.New("kubeadm init in a network that has a cluster")
	case cluster.ControlPlaneEndpoint != n.endpoint():
		return fmt.Errorf("kubeadm's controlPlaneEndpoint is %q, and the network's is %q",
			cluster.ControlPlaneEndpoint, n.endpoint())
	}
	ca, err := readAuthority(m.data.files, clusterAuthority)
	if err != nil {
		return err
	}
	var etcdCA *authority
	if cluster.Etcd.External == nil {
		if etcdCA, err = readAuthority(m.data.files, etcdAuthority); err != nil {
			return err
		}
	}
	n.ca, n.etcdCA, n.initialized = ca, etcdCA, true
	if err := c.createCluster(ctx, n, cluster.raw, m.Version); err != nil {
		return err
	}
	return c.startControlPlane(ctx, m, own.NodeRegistration)
}

// join is kubeadm join: it adds m to the cluster of the network.
func (c *Cloud) join(ctx context.Context, m *machine, documents map[string]string) (string, error) {
	var own joinConfiguration
	if err := readDocument(documents, "JoinConfiguration", &own); err != nil {
		return api.BootstrapFailed, err
	}
	token, n := own.Discovery.BootstrapToken, m.network
	switch {
	case token == nil:
		return api.BootstrapFailed, errors.New("kubeadm's JoinConfiguration has no bootstrap token")
	case token.APIServerEndpoint != n.endpoint():
		return api.BootstrapFailed, fmt.Errorf("kubeadm's apiServerEndpoint is %q, and the network's is %q",
			token.APIServerEndpoint, n.endpoint())
	case m.ControlPlane != (own.ControlPlane != nil):
		return api.BootstrapFailed, errors.New("the bootstrap data is of a machine of the other role")
	case len(n.servers) == 0:
		return api.JoinFailed, errors.New("no API server answers")
	case !slices.Contains(token.CACertHashes, n.ca.hash()):
		return api.BootstrapFailed, errors.New("kubeadm's caCertHashes do not have the cluster's authority")
	}
	if err := c.admit(ctx, n, token.Token); err != nil {
		return api.JoinFailed, err
	}
	if own.ControlPlane == nil {
		return api.JoinFailed, c.createNode(ctx, m, own.NodeRegistration)
	}
	err := n.ca.sameAuthority(m.data.files, clusterAuthority)
	if err == nil && n.etcdCA != nil {
		err = n.etcdCA.sameAuthority(m.data.files, etcdAuthority)
	}
	if err != nil {
		return api.BootstrapFailed, err
	}
	return api.JoinFailed, c.startControlPlane(ctx, m, own.NodeRegistration)
}

// admit returns an error unless the token is current in the cluster.
func (c *Cloud) admit(ctx context.Context, n *network, token string) error {
	parts := bootstrapToken.FindStringSubmatch(token)
	if parts == nil {
		return errors.New("the bootstrap token is not of the form id.secret")
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + parts[1]}
	switch err := c.store(n).Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the cluster has no bootstrap token %s", parts[1])
	case err != nil:
		return err
	}
	expires, err := time.Parse(time.RFC3339, string(secret.Data["expiration"]))
	switch {
	case string(secret.Data["token-secret"]) != parts[2]:
		return fmt.Errorf("the secret of bootstrap token %s is another", parts[1])
	case string(secret.Data["usage-bootstrap-authentication"]) != "true":
		return fmt.Errorf("bootstrap token %s does not authenticate", parts[1])
	case len(secret.Data["expiration"]) > 0 && (err != nil || time.Now().After(expires)):
		return fmt.Errorf("bootstrap token %s has expired", parts[1])
	}
	return nil
}

// startControlPlane makes the Node, and the servers that are behind the load balancer.
func (c *Cloud) startControlPlane(ctx context.Context, m *machine, own nodeRegistration) error {
	n := m.network
	if err := c.createNode(ctx, m, own); err != nil {
		return err
	}
	if n.etcdCA != nil {
		if err := c.createEtcdPod(ctx, m); err != nil {
			return err
		}
		if err := c.mux.AddEtcdMember(n.id, etcdName(m), n.etcdCA.certificate, n.etcdCA.key); err != nil {
			return err
		}
		m.hasEtcd = true
	}
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if err := c.create(ctx, n, staticPod(m, component)); err != nil {
			return err
		}
	}
	n.held.release()
	n.held = nil
	if err := c.mux.AddAPIServer(n.id, serverName(m), n.ca.certificate, n.ca.key); err != nil {
		return err
	}
	m.serving = true
	n.servers[m.ID] = true
	return nil
}

// halt stops what runs on m. Its Node stays, and is not ready any more; so do its Pods.
func (c *Cloud) halt(ctx context.Context, m *machine) {
	n := m.network
	if m.Node != "" {
		if err := c.changeNode(ctx, m, func(node *corev1.Node) { setReady(node, corev1.ConditionUnknown) }); err != nil {
			c.log.Error("halt", "id", m.ID, "error", err)
		}
	}
	if m.hasEtcd {
		m.hasEtcd = false
		if err := c.mux.DeleteEtcdMember(n.id, etcdName(m)); err != nil {
			c.log.Error("halt", "id", m.ID, "error", err)
		}
	}
	if !m.serving {
		return
	}
	m.serving = false
	delete(n.servers, m.ID)
	if err := c.mux.DeleteAPIServer(n.id, serverName(m)); err != nil {
		c.log.Error("halt", "id", m.ID, "error", err)
	}
	if len(n.servers) > 0 {
		return
	}
	held, err := reserve(n.listener.Port())
	if err != nil {
		c.log.Error("hold the port of a network without API servers", "id", n.id, "error", err)
	}
	n.held = held
}
