// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

func (c *Cloud) servePutNetwork(r *http.Request) (int, any, error) {
	var spec api.NetworkSpec
	key, err := decodeKeyed(r, &spec)
	if err != nil {
		return 0, nil, err
	}
	n, created, err := c.putNetwork(key, spec)
	if err != nil {
		return 0, nil, err
	}
	return made(created), describeNetwork(n), nil
}

// networkOf returns the network that the path names.
func (c *Cloud) networkOf(r *http.Request) (*network, error) {
	if n := c.findNetwork(r.PathValue("id")); n != nil {
		return n, nil
	}
	return nil, fail(api.NotFound, "there is no network %s", r.PathValue("id"))
}

func (c *Cloud) serveGetNetwork(r *http.Request) (int, any, error) {
	n, err := c.networkOf(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, describeNetwork(n), nil
}

func (c *Cloud) serveDeleteNetwork(r *http.Request) (int, any, error) {
	n, err := c.networkOf(r)
	if err != nil {
		return 0, nil, err
	}
	if err := c.deleteNetwork(n); err != nil {
		return 0, nil, err
	}
	return http.StatusAccepted, describeNetwork(n), nil
}

func (c *Cloud) serveKubeconfig(r *http.Request) (int, any, error) {
	n, err := c.networkOf(r)
	if err != nil {
		return 0, nil, err
	}
	if len(n.servers) == 0 {
		return 0, nil, fail(api.Conflict, "network %s has no API server", n.key)
	}
	access, err := n.listener.RESTConfig()
	if err != nil {
		return 0, nil, err
	}
	const name = "fake"
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			name: {Server: access.Host, CertificateAuthorityData: access.CAData},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			name: {ClientCertificateData: access.CertData, ClientKeyData: access.KeyData},
		},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	return http.StatusOK, content, err
}

func (c *Cloud) servePutMachine(r *http.Request) (int, any, error) {
	var spec api.MachineSpec
	key, err := decodeKeyed(r, &spec)
	if err != nil {
		return 0, nil, err
	}
	m, created, err := c.putMachine(key, spec)
	if err != nil {
		return 0, nil, err
	}
	return made(created), describeMachine(m), nil
}

func (c *Cloud) servePostMachine(r *http.Request) (int, any, error) {
	var spec api.MachineSpec
	if err := decode(r, &spec); err != nil {
		return 0, nil, err
	}
	m, created, err := c.postMachine(spec)
	if err != nil {
		return 0, nil, err
	}
	return made(created), describeMachine(m), nil
}

func (c *Cloud) serveListMachines(r *http.Request) (int, any, error) {
	query := r.URL.Query()
	list, err := c.listMachines(query.Get("network"), query["tag"])
	return http.StatusOK, list, err
}

// machineOf returns the machine that the path names.
func (c *Cloud) machineOf(r *http.Request) (*machine, error) {
	if m := c.findMachine(r.PathValue("id")); m != nil {
		return m, nil
	}
	return nil, fail(api.NotFound, "there is no machine %s", r.PathValue("id"))
}

func (c *Cloud) serveGetMachine(r *http.Request) (int, any, error) {
	m, err := c.machineOf(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, describeMachine(m), nil
}

func (c *Cloud) servePatchMachine(r *http.Request) (int, any, error) {
	var change api.MachineChange
	if err := decode(r, &change); err != nil {
		return 0, nil, err
	}
	m, err := c.machineOf(r)
	if err != nil {
		return 0, nil, err
	}
	if err := c.changeMachine(r.Context(), m, change); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, describeMachine(m), nil
}

func (c *Cloud) serveDeleteMachine(r *http.Request) (int, any, error) {
	m, err := c.machineOf(r)
	if err != nil {
		return 0, nil, err
	}
	c.deleteMachine(r.Context(), m)
	return http.StatusAccepted, describeMachine(m), nil
}

func (c *Cloud) serveVanish(r *http.Request) (int, any, error) {
	m, err := c.machineOf(r)
	if err != nil {
		return 0, nil, err
	}
	c.vanish(r.Context(), m)
	return http.StatusNoContent, nil, nil
}

func (c *Cloud) servePutGroup(r *http.Request) (int, any, error) {
	var spec api.GroupSpec
	key, err := decodeKeyed(r, &spec)
	if err != nil {
		return 0, nil, err
	}
	g, created, err := c.putGroup(r.Context(), key, spec)
	if err != nil {
		return 0, nil, err
	}
	return made(created), c.describeGroup(g), nil
}

// groupOf returns the group that the path names.
func (c *Cloud) groupOf(r *http.Request) (*group, error) {
	if g := c.findGroup(r.PathValue("id")); g != nil {
		return g, nil
	}
	return nil, fail(api.NotFound, "there is no group %s", r.PathValue("id"))
}

func (c *Cloud) serveGetGroup(r *http.Request) (int, any, error) {
	g, err := c.groupOf(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, c.describeGroup(g), nil
}

func (c *Cloud) serveDeleteGroup(r *http.Request) (int, any, error) {
	g, err := c.groupOf(r)
	if err != nil {
		return 0, nil, err
	}
	g.deleting = true
	for _, m := range c.instances(g) {
		c.deleteMachine(r.Context(), m)
	}
	return http.StatusAccepted, c.describeGroup(g), nil
}
