// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// metadata is where clouds hand out credentials.
const metadata = "169.254.169.254"

// TestNetworkPolicies connects from and to the product's Pods, first without anything that enforces NetworkPolicies, and then
// with kube-router as a firewall: what docs/deploy.md says is open stays open, and the rest is closed.
func TestNetworkPolicies(t *testing.T) {
	all(t)
	deployInfrastructure(t)
	applyFile(t, "sources.yaml")
	t.Cleanup(func() { kubectl(t, "delete", "-f", node.file("sources.yaml")) })
	kubectl(t, "wait", "pod/source", "-n", "monitoring", "--for=condition=Ready", "--timeout=60s")
	kubectl(t, "wait", "pod/source", "-n", "default", "--for=condition=Ready", "--timeout=60s")
	if err := run("ip", "addr", "add", metadata+"/32", "dev", "hgpods"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run("ip", "addr", "del", metadata+"/32", "dev", "hgpods") })
	for _, port := range []string{"80", "443"} {
		l, err := net.Listen("tcp", metadata+":"+port)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	address := func(namespace, label string) string {
		ip, _, _ := strings.Cut(kubectl(t, "-n", namespace, "get", "pods", "-l", label, "--field-selector=status.phase=Running",
			"-o", "jsonpath={.items[*].status.podIP}"), " ")
		return ip
	}
	gateway := address(namespace, "app.kubernetes.io/name=hookgate")
	extension, dns := address("acme-system", "app=acme-extension")+":9443", address("kube-system", "k8s-app=kube-dns")+":53"
	https, grpc, webhook, metrics := gateway+":9443", gateway+":9090", gateway+":9444", gateway+":8443"
	health, api, provider := gateway+":9440", nodeIP+":6443", address(namespace, "app.kubernetes.io/name=hookgate-infrastructure")
	execIn := func(namespace, pod string) []string {
		return node.kubectlArgs("-n", namespace, "exec", pod, "--", "/pod", "connect")
	}
	in := func(pid int) []string {
		return []string{"nsenter", "--target", strconv.Itoa(pid), "--net", filepath.Join(os.Getenv(podsVariable), "pod"), "connect"}
	}
	tries := map[string]struct {
		from         []string
		open, closed []string
	}{
		"a caller":           {execIn("callers", "caller"), []string{https, grpc, webhook}, []string{metrics, health, provider + ":8443"}},
		"another Pod":        {execIn("default", "source"), []string{webhook, provider + ":9444"}, []string{https, grpc, metrics, health, provider + ":8443"}},
		"what reads metrics": {execIn("monitoring", "source"), []string{metrics, webhook, provider + ":8443"}, []string{https, grpc, health}},
		"the gateway":        {in(gateways(t)[0]), []string{extension, dns, api, metadata + ":443"}, []string{metadata + ":80"}},
		"the provider":       {in(pids(t, "/hookgate infrastructure")[0]), []string{grpc, dns, api}, []string{https, extension, metadata + ":80"}},
	}
	for from, try := range tries {
		all := slices.Concat(try.open, try.closed)
		if got := connects(t, try.from, all); len(got) != len(all) {
			t.Fatalf("without a firewall, %s connects to %v of %v", from, got, all)
		}
	}
	firewall(t)
	for from, try := range tries {
		process.EventuallySees(t, process.Patience, from+" connects to what is open", func() (string, bool) {
			got := connects(t, try.from, slices.Concat(try.open, try.closed))
			select {
			case <-node.logs["kube-router"].Exited():
				t.Fatalf("kube-router has ended: %s", node.logs["kube-router"].LogTail())
			default:
			}
			return fmt.Sprintf("%v, want %v", got, try.open), slices.Equal(got, slices.Sorted(slices.Values(try.open)))
		})
	}
	if c := load(t, 20, 2*time.Second)(); c.Failed > 0 || c.Wrong > 0 {
		t.Errorf("calls behind the firewall: %s", c.log)
	}
	applyFile(t, "jobs.yaml") // which asks the webhooks
}

// connects returns the addresses that a program can connect to.
func connects(t *testing.T, from, addresses []string) []string {
	t.Helper()
	out, err := exec.Command(from[0], slices.Concat(from[1:], addresses)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return slices.Sorted(strings.FieldsSeq(string(out)))
}

// firewall runs kube-router, which enforces NetworkPolicies by iptables and ipset, until the test ends.
func firewall(t *testing.T) {
	t.Helper()
	args := []string{"--kubeconfig=" + node.kubeconfig, "--hostname-override=node1", "--run-router=false", "--run-service-proxy=false",
		"--run-firewall=true", "--enable-ipv6=false", "--service-cluster-ip-range=10.96.0.0/24", "--iptables-sync-period=5s", "--health-port=0"}
	if err := node.start("kube-router", args...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		node.logs["kube-router"].Stop()
		if err := node.start("kube-router", "--cleanup-config", "--enable-ipv6=false"); err != nil {
			t.Error(err)
			return
		}
		<-node.logs["kube-router"].Exited()
	})
}
