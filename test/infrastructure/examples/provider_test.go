// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
	"github.com/hookgate/hookgate/test/process"
)

// extensions are the examples whose machines the cloud makes while they wait.
var extensions = map[string]extension{
	"go": {
		command: func(t *testing.T) []string {
			t.Helper()
			program := filepath.Join(t.TempDir(), "provider")
			build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/infrastructure/go")
			build.Dir = "../../.."
			if output, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			return []string{program}
		},
		policy: ", protocol: GRPC",
	},
	"python": {
		command: func(*testing.T) []string { return []string{filepath.Join(folder, "python", "run")} },
		policy:  ", protocol: GRPC",
	},
}

// TestSize keeps the programs of the examples small enough to start from, and each of them among those that are tested.
func TestSize(t *testing.T) {
	const most = 250
	tested := map[string]bool{}
	for _, pattern := range []string{"*/*.go", "*/*.py"} {
		programs, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range programs {
			text, err := os.ReadFile(program)
			if err != nil {
				t.Fatal(err)
			}
			if lines := bytes.Count(text, []byte("\n")); lines >= most {
				t.Errorf("%s has %d lines, which is not under %d", program, lines, most)
			}
			tested[filepath.Base(filepath.Dir(program))] = true
		}
	}
	want := map[string]bool{"jobs": true, "ec2": true}
	for name := range extensions {
		want[name] = true
	}
	if !maps.Equal(tested, want) {
		t.Errorf("there are programs in %v, and those in %v are tested", tested, want)
	}
}

// TestProviders tests each example in steps. Each step goes on from the one before, because starting takes longer than
// testing.
func TestProviders(t *testing.T) {
	for name, x := range extensions {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, x)
			w.checkDiscovery()
			w.checkNeverMade()
			data := w.checkCluster()
			id := w.checkKilled(data)
			w.checkRefusals(data)
			w.checkCloudDown(id)
			w.checkVanished(id)
			w.checkEnd()
		})
	}
}

// checkDiscovery: the handlers, the prefix, and the schema of the parameters are announced.
func (w *fixture) checkDiscovery() {
	w.Helper()
	var answer *infrastructurev1alpha1.DiscoverInfrastructureResponse
	process.Eventually(w, "the gateway has discovered the extension", func() bool {
		var err error
		answer, err = w.discovery.DiscoverInfrastructure(w.soon(),
			&infrastructurev1alpha1.DiscoverInfrastructureRequest{Handler: "acme"})
		return err == nil
	})
	if answer.GetStatus() != success || answer.GetProviderIdPrefix() != "fake://" || len(answer.GetHandlers()) != 4 {
		w.Errorf("discovery: %v", answer)
	}
	var schema struct {
		Type       string
		Properties map[string]struct {
			Type, Default string
			Enum          []string
		}
	}
	if err := json.Unmarshal(answer.GetMachineParameters().GetRaw(), &schema); err != nil {
		w.Fatal(err)
	}
	if size := schema.Properties["size"]; schema.Type != "object" || size.Type != "string" || size.Default != "small" ||
		len(size.Enum) != 2 {
		w.Errorf("the schema of machines' parameters: %s", answer.GetMachineParameters().GetRaw())
	}
}

// checkNeverMade: what never was is gone at once.
func (w *fixture) checkNeverMade() {
	w.Helper()
	if times := w.deleteMachine("never-id", ""); times != 0 {
		w.Errorf("a machine that never was was being deleted in %d answers", times)
	}
	if answer := w.deleteCluster(); answer.GetStatus() != success || answer.GetState() != gone {
		w.Errorf("a cluster that never was: %v", answer)
	}
}

// checkCluster: the cluster gets ready, with an endpoint and failure domains, and stays so. It returns the bootstrap
// data of a control plane for it.
func (w *fixture) checkCluster() []byte {
	w.Helper()
	w.faults(api.Faults{NetworkDelay: "1h"})
	if answer := w.reconcileCluster(cluster()); answer.GetPhase() != provisioning || answer.GetControlPlaneEndpoint() != nil {
		w.Errorf("a cluster that has begun: %v", answer)
	}
	w.faults(api.Faults{})
	answer := w.awaitCluster()
	endpoint := answer.GetControlPlaneEndpoint()
	if endpoint.GetHost() == "" || endpoint.GetPort() == 0 || len(answer.GetFailureDomains()) != 3 ||
		!answer.GetFailureDomains()[0].GetControlPlane() {
		w.Errorf("a cluster that is ready: %v", answer)
	}
	again := cluster()
	again.ControlPlaneEndpoint = endpoint // as it was recorded
	if second := w.reconcileCluster(again); !proto.Equal(second, answer) {
		w.Errorf("the second answer is %v, the first was %v", second, answer)
	}
	if networks := w.counts().Networks; networks.Created != 1 {
		w.Errorf("%d networks were made", networks.Created)
	}
	return newBootstrap(w.T, endpoint)
}

// checkKilled: an extension that is killed after the cloud has made a machine, and before it has answered, finds it
// again. It returns the machine's provider ID.
func (w *fixture) checkKilled(data []byte) string {
	w.Helper()
	w.faults(api.Faults{Rules: []api.Rule{
		{Method: http.MethodPut, Path: "/machines/*", Action: api.ActionHang, After: true},
	}})
	ended := make(chan error, 1)
	go func() {
		_, err := w.machines.ReconcileMachine(w.soon(), machine("cp-0-id", data))
		ended <- err
	}()
	process.Eventually(w, "the cloud has made the machine", func() bool { return w.counts().Machines.Created == 1 })
	w.provider.Kill()
	if err := <-ended; err == nil {
		w.Error("the call succeeded without the extension")
	}
	w.faults(api.Faults{})
	w.provider = w.start()
	process.Eventually(w, "the gateway has found the extension again", func() bool {
		_, err := w.machines.ReconcileMachine(w.soon(), machine("cp-0-id", data))
		return err == nil
	})
	answer := w.awaitMachine(machine("cp-0-id", data))
	if !strings.HasPrefix(answer.GetProviderId(), "fake://") || len(answer.GetAddresses()) == 0 ||
		answer.GetFailureDomain() == "" {
		w.Errorf("a machine that is ready: %v", answer)
	}
	for _, request := range []*infrastructurev1alpha1.ReconcileMachineRequest{
		machine("cp-0-id", data), recorded("cp-0-id", answer.GetProviderId()),
	} {
		if second := w.reconcileMachine(request); !proto.Equal(second, answer) {
			w.Errorf("the second answer is %v, the first was %v", second, answer)
		}
	}
	w.checkMachines(1, 1)
	return answer.GetProviderId()
}

// checkRefusals: what the cloud refuses is Failed, with its reason, and made once the reason has gone away.
func (w *fixture) checkRefusals(data []byte) {
	w.Helper()
	elsewhere := machine("cp-1-id", data)
	elsewhere.FailureDomain = "nowhere"
	w.refused(elsewhere, api.InvalidParameters)

	const wrong = "not-the-one-of-the-cloud"
	intruder := machine("cp-1-id", data)
	intruder.Subject.Credentials["token"] = wrong
	texts := w.refused(intruder, api.CredentialsInvalid).String()
	deletion, err := w.machines.DeleteMachine(w.soon(),
		&infrastructurev1alpha1.DeleteMachineRequest{Subject: intruder.GetSubject()})
	if err != nil || deletion.GetStatus() != failure {
		w.Errorf("a deletion with wrong credentials: %v, %v", deletion, err)
	}
	intruder.Subject.Credentials["token"] = wrong + "\n."
	broken := w.reconcileMachine(intruder)
	if broken.GetStatus() != failure {
		w.Errorf("credentials that no header of HTTP can have: %v", broken)
	}
	for _, text := range []string{texts, deletion.String(), broken.String(), w.provider.Output(), w.gateway.Output()} {
		if strings.Contains(text, wrong) || strings.Contains(text, cloudToken) {
			w.Errorf("a text has the credentials: %s", text)
		}
	}

	w.faults(api.Faults{Quota: new(1)})
	w.refused(machine("cp-1-id", data), api.QuotaExceeded)
	full := machine("cp-1-id", data)
	full.FailureDomain = "fd-2"
	w.faults(api.Faults{Full: []string{"fd-2"}})
	w.refused(full, api.InsufficientCapacity)
	w.checkMachines(1, 1)

	w.faults(api.Faults{MachineDelay: "1h"})
	if answer := w.reconcileMachine(full); answer.GetPhase() != provisioning || answer.GetFailureDomain() != "fd-2" {
		w.Errorf("a machine for which there is room again: %v", answer)
	}
	w.faults(api.Faults{})
	process.Eventually(w, "kubeadm init has failed in a cluster that is there", func() bool {
		return w.reconcileMachine(full).GetPhase() == failed
	})
	if answer := w.refused(full, api.BootstrapFailed); answer.GetProviderId() == "" {
		w.Errorf("a machine that failed: %v", answer)
	}
	w.checkMachines(2, 2)
	w.deleteMachine("cp-1-id", "")
	w.checkMachines(1, 2)
}

// checkCloudDown: a cloud that does not answer, or answers nonsense, says nothing about what exists.
func (w *fixture) checkCloudDown(id string) {
	w.Helper()
	for name, rule := range map[string]api.Rule{
		"closed":   {Action: api.ActionClose},
		"garbage":  {Action: api.ActionGarbage},
		"overload": {Action: api.ActionError, Status: http.StatusServiceUnavailable, Reason: api.Unavailable},
		"broken":   {Action: api.ActionError},
	} {
		rule.Path = "/*/*"
		w.faults(api.Faults{Rules: []api.Rule{rule}})
		for _, request := range []*infrastructurev1alpha1.ReconcileMachineRequest{
			recorded("cp-0-id", id), machine("cp-2-id", []byte("#cloud-config")),
		} {
			if answer := w.reconcileMachine(request); answer.GetStatus() != failure || answer.GetMessage() == "" {
				w.Errorf("%s: machine: %v, want Failure", name, answer)
			}
		}
		if answer := w.reconcileCluster(cluster()); answer.GetStatus() != failure {
			w.Errorf("%s: cluster: %v, want Failure", name, answer)
		}
	}
	w.faults(api.Faults{Rules: []api.Rule{{Path: "/*/*", Action: api.ActionClose}}})
	answer, err := w.machines.DeleteMachine(w.soon(), &infrastructurev1alpha1.DeleteMachineRequest{Subject: subject("cp-0-id")})
	if err != nil || answer.GetStatus() != failure {
		w.Errorf("a deletion without the cloud: %v, %v, want Failure", answer, err)
	}
	w.faults(api.Faults{})
	if answer := w.deleteCluster(); answer.GetStatus() != failure {
		w.Errorf("a deletion of a network with a machine: %v, want Failure", answer)
	}
	w.checkMachines(1, 2)
}

// checkVanished: a machine that was recorded and is not there any more is Failed, and never made again.
func (w *fixture) checkVanished(id string) {
	w.Helper()
	w.must(http.MethodPost, "/machines/cp-0-id/vanish", nil, nil)
	for range 2 {
		w.refused(recorded("cp-0-id", id), "InstanceGone")
	}
	w.checkMachines(0, 2)
	if times := w.deleteMachine("cp-0-id", id); times != 0 {
		w.Errorf("a machine that had vanished was being deleted in %d answers", times)
	}
}

// checkEnd: what is deleted is being deleted until it is gone, and nothing is left.
func (w *fixture) checkEnd() {
	w.Helper()
	w.reconcileMachine(machine("cp-3-id", []byte("#cloud-config")))
	w.faults(api.Faults{DeletionDelay: "200ms"})
	if times := w.deleteMachine("cp-3-id", ""); times == 0 {
		w.Error("the machine was never being deleted")
	}
	times := 0
	process.Eventually(w, "the cluster is gone", func() bool {
		answer := w.deleteCluster()
		if answer.GetStatus() != success {
			w.Fatalf("the cluster: %v", answer)
		}
		if answer.GetState() == deleting {
			times++
		}
		return answer.GetState() == gone
	})
	if times == 0 {
		w.Error("the cluster was never being deleted")
	}
	w.checkMachines(0, 3)
	if networks := w.counts().Networks; networks.Exist != 0 || networks.Created != 1 || networks.Deleted != 1 {
		w.Errorf("networks: %+v", networks)
	}
}
