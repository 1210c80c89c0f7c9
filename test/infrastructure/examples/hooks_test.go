// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"encoding/json"
	"net"
	"strconv"
	"testing"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
)

// Short names of what the hooks answer.
const (
	success = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
	failure = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE

	provisioning = infrastructurev1alpha1.Phase_PHASE_PROVISIONING
	ready        = infrastructurev1alpha1.Phase_PHASE_READY
	failed       = infrastructurev1alpha1.Phase_PHASE_FAILED

	deleting = infrastructurev1alpha1.DeletionState_DELETION_STATE_DELETING
	gone     = infrastructurev1alpha1.DeletionState_DELETION_STATE_GONE
)

// version is the one of Kubernetes.
const version = "v1.36.3"

// cluster returns a request for the cluster of all tests.
func cluster() *infrastructurev1alpha1.ReconcileClusterRequest {
	return &infrastructurev1alpha1.ReconcileClusterRequest{Subject: subject("net")}
}

// machine returns a request for a control plane machine.
func machine(id string, data []byte) *infrastructurev1alpha1.ReconcileMachineRequest {
	return &infrastructurev1alpha1.ReconcileMachineRequest{
		Subject: subject(id), ControlPlane: true, Version: version,
		Bootstrap: &infrastructurev1alpha1.Bootstrap{Data: data, Format: "cloud-config"},
	}
}

// recorded returns a request for a machine that was ready: it has the provider ID, and no bootstrap data.
func recorded(id, providerID string) *infrastructurev1alpha1.ReconcileMachineRequest {
	request := machine(id, nil)
	request.Bootstrap, request.ProviderId = nil, providerID
	return request
}

// reconcileCluster calls the hook and fails the test on an error.
func (w *fixture) reconcileCluster(
	request *infrastructurev1alpha1.ReconcileClusterRequest,
) *infrastructurev1alpha1.ReconcileClusterResponse {
	w.Helper()
	answer, err := w.clusters.ReconcileCluster(w.soon(), request)
	if err != nil {
		w.Fatal(err)
	}
	return answer
}

// reconcileMachine calls the hook and fails the test on an error.
func (w *fixture) reconcileMachine(
	request *infrastructurev1alpha1.ReconcileMachineRequest,
) *infrastructurev1alpha1.ReconcileMachineResponse {
	w.Helper()
	answer, err := w.machines.ReconcileMachine(w.soon(), request)
	if err != nil {
		w.Fatal(err)
	}
	return answer
}

// refused fails the test unless the answer is Failed for this reason.
func (w *fixture) refused(request *infrastructurev1alpha1.ReconcileMachineRequest, reason string) *infrastructurev1alpha1.ReconcileMachineResponse {
	w.Helper()
	answer := w.reconcileMachine(request)
	if answer.GetStatus() != success || answer.GetPhase() != failed || answer.GetReason() != reason ||
		answer.GetMessage() == "" {
		w.Fatalf("%v, want Failed with the reason %s and a message", answer, reason)
	}
	return answer
}

// awaitCluster calls the hook until the cluster is ready.
func (w *fixture) awaitCluster() *infrastructurev1alpha1.ReconcileClusterResponse {
	w.Helper()
	var answer *infrastructurev1alpha1.ReconcileClusterResponse
	process.Eventually(w, "the cluster is ready", func() bool {
		answer = w.reconcileCluster(cluster())
		if answer.GetStatus() != success || answer.GetPhase() == failed {
			w.Fatalf("the cluster: %v", answer)
		}
		return answer.GetPhase() == ready
	})
	return answer
}

// awaitMachine calls the hook until the machine is ready.
func (w *fixture) awaitMachine(
	request *infrastructurev1alpha1.ReconcileMachineRequest,
) *infrastructurev1alpha1.ReconcileMachineResponse {
	w.Helper()
	var answer *infrastructurev1alpha1.ReconcileMachineResponse
	process.Eventually(w, "the machine is ready", func() bool {
		answer = w.reconcileMachine(request)
		if answer.GetStatus() != success || answer.GetPhase() == failed {
			w.Fatalf("the machine: %v", answer)
		}
		return answer.GetPhase() == ready
	})
	return answer
}

// deleteMachine calls the hook until the machine is gone, and returns how often it was still being deleted.
func (w *fixture) deleteMachine(id, providerID string) int {
	w.Helper()
	times := 0
	process.Eventually(w, "machine "+id+" is gone", func() bool {
		answer, err := w.machines.DeleteMachine(w.soon(), &infrastructurev1alpha1.DeleteMachineRequest{
			Subject: subject(id), ProviderId: providerID,
		})
		if err != nil || answer.GetStatus() != success {
			w.Fatalf("%v, %v", answer, err)
		}
		if answer.GetState() == deleting {
			times++
		}
		return answer.GetState() == gone
	})
	return times
}

// deleteCluster calls the hook and fails the test on an error.
func (w *fixture) deleteCluster() *infrastructurev1alpha1.DeleteClusterResponse {
	w.Helper()
	answer, err := w.clusters.DeleteCluster(w.soon(), &infrastructurev1alpha1.DeleteClusterRequest{Subject: subject("net")})
	if err != nil {
		w.Fatal(err)
	}
	return answer
}

// newBootstrap returns the cloud-config of the first control plane machine of a cluster, as Cluster API's bootstrap
// provider would write it, as far as the cloud reads it. JSON is YAML, too.
func newBootstrap(t *testing.T, endpoint *infrastructurev1alpha1.Endpoint) []byte {
	t.Helper()
	certificates := secret.NewCertificatesForInitialControlPlane(nil)
	if err := certificates.Generate(); err != nil {
		t.Fatal(err)
	}
	const path = "/run/kubeadm/kubeadm.yaml"
	configuration := "kind: ClusterConfiguration\ncontrolPlaneEndpoint: " +
		net.JoinHostPort(endpoint.GetHost(), strconv.Itoa(int(endpoint.GetPort()))) + "\n---\nkind: InitConfiguration\n"
	files := append(certificates.AsFiles(), bootstrapv1.File{Path: path, Content: configuration})
	var written []map[string]string
	for _, file := range files {
		written = append(written, map[string]string{"path": file.Path, "content": file.Content})
	}
	document, err := json.Marshal(map[string]any{
		"write_files": written, "runcmd": []string{"kubeadm init --config " + path},
	})
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("#cloud-config\n"), document...)
}
