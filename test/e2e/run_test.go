// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lingers reports whether the suite shows a person what it has made, until Ctrl-C: `make run-infrastructure` asks for it.
func lingers() bool { return os.Getenv("HOOKGATE_LINGER") != "" }

// TestRunInfrastructure makes a Cluster with the example provider in Go, scales its pool, and runs the commands that
// `make run-infrastructure` prints, of which it is the program.
func TestRunInfrastructure(t *testing.T) {
	interrupted, stop := signal.NotifyContext(t.Context(), syscall.SIGINT, syscall.SIGTERM)
	if lingers() {
		fmt.Println("Starting an API server and Cluster API, which takes half a minute. Ctrl-C ends everything.")
	} else {
		stop() // the suite ends as always
	}
	defer stop()
	w := begin(t, false)
	say := func(format string, args ...any) {
		w.logf(format, args...)
		if lingers() {
			fmt.Printf(format+"\n", args...)
		}
	}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithCancel(w.ctx)
	defer cancel()
	if lingers() {
		context.AfterFunc(interrupted, cancel)
	}
	say("Cluster API runs. Starting a cloud, the provider in examples/infrastructure/go, the gateway and the controllers.")
	cloud := w.startCloud()
	w.startProvidersOf(cloud, inPools)

	say("Making a Cluster of one control plane machine and a pool of two.")
	for _, o := range w.template("cluster-template-machinepool.yaml", map[string]string{
		"CLUSTER_NAME": "my-cluster", "NAMESPACE": namespace, "KUBERNETES_VERSION": oldVersion, "WORKER_MACHINE_COUNT": "2",
		"HOOKGATE_INFRASTRUCTURE_CLASS": inPools,
	}) {
		w.create(o)
	}
	runs := func(n int) {
		w.eventuallyWithin(stepPatience, fmt.Sprintf("a pool of %d machines runs", n), func() (string, bool) {
			list := &clusterv1.MachineList{}
			if err := w.List(w.ctx, list, client.InNamespace(namespace)); err != nil {
				return err.Error(), false
			}
			running := 0
			for i := range list.Items {
				if list.Items[i].Status.Phase == string(clusterv1.MachinePhaseRunning) {
					running++
				}
			}
			return fmt.Sprintf("%d of %d Machines run", running, len(list.Items)), running == n+1 && len(list.Items) == n+1
		})
	}
	runs(2)
	say("Scaling the pool to three.")
	w.patch("MachinePool", "my-cluster-mp-0", int64(3), "spec", "replicas")
	runs(3)

	kubeconfig := w.kubeconfigOf(namespace)
	page := "http://" + loopback(w.gateway.diagnostics) + "/infrastructure/"
	programs := []string{filepath.Dir(folder(t, "HOOKGATE_BIN")), folder(t, "KUBEBUILDER_ASSETS")}
	commands := []string{
		"kubectl get clusters,machinepools,machines", "hookgate get clusters", "hookgate get pools", "hookgate get machines",
		"curl --silent " + cloud + "/counts", "curl --silent --output /dev/null --write-out '%{http_code}\\n' " + page,
	}
	for _, command := range commands {
		cmd := exec.CommandContext(w.ctx, "bash", "-c", command)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+strings.Join(append(programs, os.Getenv("PATH")), ":"))
		output, err := cmd.CombinedOutput()
		if err != nil || len(output) == 0 || strings.HasPrefix(command, "hookgate get pools") && !strings.Contains(string(output), "3/3") {
			t.Errorf("%s: %v\n%s", command, err, output)
		}
		t.Logf("$ %s\n%s", command, output)
	}
	if !lingers() {
		w.calm()
		return
	}
	fmt.Printf(`
A Cluster runs, and its pool has three machines. Look at it in another shell:

  export KUBECONFIG=%s
  export PATH=%s:$PATH

  %s
  kubectl scale machinepool/my-cluster-mp-0 --replicas=4
  kubectl delete cluster my-cluster

The page of the gateway is at %s
What the programs print is in %s

Ctrl-C ends everything, and leaves nothing.
`, kubeconfig, strings.Join(programs, ":"), strings.Join(commands[:5], "\n  "), page, w.logs)
	<-w.ctx.Done()
	fmt.Println("Ending.")
}

// kubeconfigOf returns a kubeconfig of the administrator whose commands are about a namespace.
func (w *fixture) kubeconfigOf(namespace string) string {
	w.t.Helper()
	config, err := clientcmd.LoadFromFile(w.kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	path := filepath.Join(w.logs, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		w.t.Fatal(err)
	}
	return path
}
