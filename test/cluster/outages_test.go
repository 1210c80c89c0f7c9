// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// TestDNSDown takes the cluster's DNS away, and ends the connections to an extension: calls say that its name could not be
// looked up, within their time, and succeed again when DNS is back.
func TestDNSDown(t *testing.T) {
	all(t)
	address := serviceAddress(t)
	scale := func(replicas int) {
		kubectl(t, "-n", "kube-system", "scale", "deployment/coredns", fmt.Sprintf("--replicas=%d", replicas))
		if replicas > 0 {
			rolledOut(t, "kube-system", "coredns")
			return
		}
		kubectl(t, "-n", "kube-system", "wait", "pods", "-l", "k8s-app=kube-dns", "--for=delete", "--timeout=60s")
	}
	scale(0)
	kubectl(t, "-n", "acme-system", "rollout", "restart", "deployment/acme-extension")
	rolledOut(t, "acme-system", "acme-extension")
	kubectl(t, "-n", "acme-system", "wait", "pods", "--for=delete", "--field-selector=status.phase!=Running", "--timeout=60s")
	c := load(t, 2, 5*time.Second, "-grpc", "", "-address", address)()
	if c.Failed != c.Calls || !strings.Contains(c.log, "host name lookup timed out") {
		t.Errorf("without DNS: %s", c.log)
	}
	scale(1)
	awaitCalls(t, "-address", address)
	process.EventuallySees(t, process.Patience, "no call fails with DNS again", func() (string, bool) {
		c := load(t, 10, time.Second)()
		return c.log, c.Failed == 0
	})
}

// TestAPIServerDown stops the API server for a minute: no call fails that it does not authenticate.
func TestAPIServerDown(t *testing.T) {
	all(t)
	// A Pod of its own, as kubectl's connection goes through the API server. CoreDNS does not survive so long an outage.
	command := fmt.Sprintf("    command: [/pod, load, -rate, '20', -for, 80s, -grpc, '', -address, '%s']\n", serviceAddress(t))
	manifest := strings.NewReplacer("name: caller, namespace", "name: during-an-outage, namespace",
		"    image:", command+"    image:").Replace(podOfCaller(t))
	manifest = strings.Replace(manifest, "spec:\n", "spec:\n  restartPolicy: Never\n", 1)
	apply(t, []byte(manifest))
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := tryKubectl(nil, "-n", "callers", "logs", "during-an-outage")
			t.Log(log, node.logs["kubelet"].LogTail())
		}
	})
	kubectl(t, "-n", "callers", "wait", "pod/during-an-outage", "--for=condition=Ready", "--timeout=60s")
	server := pids(t, assets()+"/kube-apiserver")
	if len(server) != 1 {
		t.Fatalf("there are %d API servers", len(server))
	}
	if err := syscall.Kill(server[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute) // it is what is tried
	if err := syscall.Kill(server[0], syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	process.EventuallySees(t, process.Patience, "the calls are made", func() (string, bool) {
		phase, _ := tryKubectl(nil, "-n", "callers", "get", "pod/during-an-outage", "-o", "jsonpath={.status.phase}")
		return phase, phase == "Succeeded" || phase == "Failed"
	})
	log := strings.TrimSpace(kubectl(t, "-n", "callers", "logs", "during-an-outage"))
	var c counts
	if err := json.Unmarshal([]byte(log[strings.LastIndex(log, "\n")+1:]), &c); err != nil || c.Calls < 1000 || c.Failed > 0 || c.Wrong > 0 {
		t.Errorf("%v %s", err, log)
	}
	t.Logf("%d calls, %d failed; the slowest took %s", c.Calls, c.Failed, c.Slowest)
}

// serviceAddress returns the address of the gateway, as a caller would have it from a cache of its node.
func serviceAddress(t *testing.T) string {
	t.Helper()
	return kubectl(t, "-n", namespace, "get", "service", "hookgate", "-o", "jsonpath={.spec.clusterIP}") + ":443"
}

// podOfCaller is the manifest of the Pod that calls.
func podOfCaller(t *testing.T) string {
	t.Helper()
	data, err := files.ReadFile("testdata/caller.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data[strings.LastIndex(string(data), "---\n"):])
}
