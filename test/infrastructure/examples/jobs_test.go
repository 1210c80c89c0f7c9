// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
	"github.com/hookgate/hookgate/test/process"
)

// jobs is a fixture whose extension starts commands, with their directories.
type jobs struct {
	*fixture

	directory string
}

// newJobs starts the example with the commands that are beside it. It looks at once again at what is ready.
func newJobs(t *testing.T) *jobs {
	t.Helper()
	example, err := filepath.Abs(filepath.Join(folder, "jobs"))
	if err != nil {
		t.Fatal(err)
	}
	j := &jobs{directory: t.TempDir()}
	t.Cleanup(func() { killAll(t, j.directory) }) // they outlive the extension
	j.fixture = newFixture(t,
		extension{command: func(*testing.T) []string { return []string{"python3", filepath.Join(example, "main.py")} }},
		"APPLY=python3 '"+filepath.Join(example, "cloud.py")+"' apply",
		"DESTROY=python3 '"+filepath.Join(example, "cloud.py")+"' destroy", "JOBS_DIR="+j.directory, "REFRESH=0")
	return j
}

// TestJobs tests the example in steps, each of which goes on from the one before.
func TestJobs(t *testing.T) {
	j := newJobs(t)
	process.Eventually(t, "the gateway has discovered the extension", func() bool {
		answer, err := j.discovery.DiscoverInfrastructure(j.soon(),
			&infrastructurev1alpha1.DiscoverInfrastructureRequest{Handler: "acme"})
		return err == nil && len(answer.GetHandlers()) == 4 && len(answer.GetMachineParameters().GetRaw()) != 0
	})
	j.checkNeverMade()
	if answer := j.reconcileCluster(cluster()); answer.GetPhase() != provisioning {
		t.Errorf("a cluster whose job has begun: %v", answer)
	}
	endpoint := j.awaitCluster().GetControlPlaneEndpoint()
	if endpoint.GetHost() == "" || endpoint.GetPort() == 0 {
		t.Fatalf("the cluster's endpoint: %v", endpoint)
	}
	data := newBootstrap(t, endpoint)

	id := j.checkJobKilled(data)
	j.checkProviderKilled(data)
	j.checkJobsRefused(data)
	j.checkJobsCloudDown(data, id)
	j.checkJobsVanished(id)
	j.checkJobsEnd()
}

// running returns the processes that have the directory on their command line.
func running(t *testing.T, directory string) []int {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, name := range names {
		text, _ := os.ReadFile(name) // it may have ended
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && strings.Contains(string(text), directory) {
			found = append(found, pid)
		}
	}
	return found
}

// killAll ends the commands that run for a directory, as a crash would.
func killAll(t *testing.T, directory string) {
	t.Helper()
	process.Eventually(t, "the commands have ended", func() bool {
		found := running(t, directory)
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		return len(found) == 0
	})
}

// restart starts the extension again, and waits until the gateway has found it.
func (j *jobs) restart() {
	j.Helper()
	j.provider = j.start()
	process.Eventually(j, "the gateway has found the extension again", func() bool {
		_, err := j.machines.DeleteMachine(j.soon(), &infrastructurev1alpha1.DeleteMachineRequest{Subject: subject("never-id")})
		return err == nil
	})
}

// awaitFailed calls the hook until its answer is Failed for this reason.
func (j *jobs) awaitFailed(request *infrastructurev1alpha1.ReconcileMachineRequest, reason string) string {
	j.Helper()
	var answer *infrastructurev1alpha1.ReconcileMachineResponse
	process.Eventually(j, "the machine is Failed: "+reason, func() bool {
		answer = j.reconcileMachine(request)
		return answer.GetPhase() == failed && answer.GetReason() == reason
	})
	return answer.GetMessage()
}

// checkJobKilled: the extension and its command are killed after the cloud has made the machine, and before the command
// knows. It returns the machine's provider ID.
func (j *jobs) checkJobKilled(data []byte) string {
	j.Helper()
	j.faults(api.Faults{Rules: []api.Rule{
		{Method: http.MethodPost, Path: "/machines", Action: api.ActionHang, After: true},
	}})
	if answer := j.reconcileMachine(machine("cp-0-id", data)); answer.GetPhase() != provisioning {
		j.Errorf("a machine whose job has begun: %v", answer)
	}
	process.Eventually(j, "the cloud has made the machine", func() bool { return j.counts().Machines.Created == 1 })
	j.provider.Kill()
	killAll(j.T, j.directory)
	j.faults(api.Faults{List: api.ListEmpty}) // the token alone keeps the cloud from making another one
	j.restart()
	answer := j.awaitMachine(machine("cp-0-id", data))
	j.faults(api.Faults{})
	if !strings.HasPrefix(answer.GetProviderId(), "fake://") || len(answer.GetAddresses()) == 0 || answer.GetFailureDomain() == "" {
		j.Errorf("a machine that is ready: %v", answer)
	}
	for range 5 { // while it is looked at, and after that
		if second := j.reconcileMachine(recorded("cp-0-id", answer.GetProviderId())); !proto.Equal(second, answer) {
			j.Errorf("the second answer is %v, the first was %v", second, answer)
		}
	}
	j.checkMachines(1, 1)
	return answer.GetProviderId()
}

// checkProviderKilled: a command goes on without the extension, which starts no second one, however often it is called.
func (j *jobs) checkProviderKilled(data []byte) {
	j.Helper()
	j.faults(api.Faults{MachineDelay: "1h"})
	j.reconcileMachine(machine("cp-1-id", data))
	process.Eventually(j, "the cloud has made the machine", func() bool { return j.counts().Machines.Created == 2 })
	directory := filepath.Join(j.directory, "machines", "cp-1-id")
	before := running(j.T, directory)
	j.provider.Kill()
	j.restart()
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			answer, err := j.machines.ReconcileMachine(j.soon(), machine("cp-1-id", data))
			if err != nil || answer.GetPhase() != provisioning {
				j.Errorf("while its job runs: %v, %v", answer, err)
			}
		})
	}
	calls.Wait()
	if after := running(j.T, directory); len(before) == 0 || len(after) != len(before) || after[0] != before[0] {
		j.Errorf("processes %v run, and before the extension was killed %v", after, before)
	}
	j.faults(api.Faults{})
	j.awaitFailed(machine("cp-1-id", data), api.BootstrapFailed) // kubeadm init in a cluster that is there
	j.deleteMachine("cp-1-id", "")
	j.checkMachines(1, 2)
}

// checkJobsRefused: the reason of a refusal is in the answer, and credentials are nowhere.
func (j *jobs) checkJobsRefused(data []byte) {
	j.Helper()
	const wrong = "not-the-one-of-the-cloud"
	intruder := machine("cp-2-id", data)
	intruder.Subject.Credentials["token"] = wrong
	message := j.awaitFailed(intruder, api.CredentialsInvalid)
	j.faults(api.Faults{Quota: new(1)})
	message += j.awaitFailed(machine("cp-2-id", data), api.QuotaExceeded)
	if again := j.awaitFailed(machine("cp-2-id", data), api.QuotaExceeded); !strings.HasSuffix(message, again) {
		j.Errorf("the message changes from %q to %q", message, again)
	}
	j.faults(api.Faults{})
	texts := []string{message, j.provider.Output(), j.gateway.Output()}
	err := filepath.WalkDir(j.directory, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		texts = append(texts, string(text))
		if info, infoErr := d.Info(); infoErr != nil || info.Mode().Perm()&0o077 != 0 {
			j.Errorf("%s: others may read it (%v, %v)", path, info, infoErr)
		}
		return err
	})
	if err != nil {
		j.Fatal(err)
	}
	for _, text := range texts {
		if strings.Contains(text, wrong) || strings.Contains(text, cloudToken) {
			j.Errorf("a text has the credentials: %s", text)
		}
	}
	j.deleteMachine("cp-2-id", "")
}

// checkJobsCloudDown: without the cloud nothing is known, and nothing is gone.
func (j *jobs) checkJobsCloudDown(data []byte, id string) {
	j.Helper()
	created := j.counts().Machines.Created
	j.faults(api.Faults{Rules: []api.Rule{
		{Path: "/machines", Action: api.ActionClose}, {Path: "/machines/*", Action: api.ActionClose},
	}})
	for _, request := range []*infrastructurev1alpha1.ReconcileMachineRequest{
		machine("cp-3-id", data), recorded("cp-0-id", id),
	} {
		process.Eventually(j, "the status is Failure", func() bool {
			answer := j.reconcileMachine(request)
			if answer.GetPhase() == failed {
				j.Errorf("a machine of a cloud that is down: %v", answer)
			}
			return answer.GetStatus() == failure
		})
	}
	process.Eventually(j, "the status of the deletion is Failure", func() bool {
		answer, err := j.machines.DeleteMachine(j.soon(), &infrastructurev1alpha1.DeleteMachineRequest{Subject: subject("cp-3-id")})
		if err != nil || answer.GetState() == gone {
			j.Fatalf("a deletion without the cloud: %v, %v", answer, err)
		}
		return answer.GetStatus() == failure
	})
	j.faults(api.Faults{})
	j.deleteMachine("cp-3-id", "")
	j.checkMachines(1, created)
}

// checkJobsVanished: a machine that was recorded is never made again, even if the directories are lost, too.
func (j *jobs) checkJobsVanished(id string) {
	j.Helper()
	created := j.counts().Machines.Created
	killAll(j.T, j.directory)
	if err := os.RemoveAll(filepath.Join(j.directory, "machines", "cp-0-id")); err != nil {
		j.Fatal(err)
	}
	if answer := j.awaitMachine(recorded("cp-0-id", id)); answer.GetProviderId() != id {
		j.Errorf("the machine without its directory: %v", answer)
	}
	j.must(http.MethodPost, "/machines/"+strings.TrimPrefix(id, "fake:///")+"/vanish", nil, nil)
	j.awaitFailed(recorded("cp-0-id", id), "InstanceGone")
	j.checkMachines(0, created)
	j.deleteMachine("cp-0-id", id)
}

// checkJobsEnd: a deletion whose extension and command are killed goes on, and leaves nothing.
func (j *jobs) checkJobsEnd() {
	j.Helper()
	created := j.counts().Machines.Created
	j.reconcileMachine(machine("cp-4-id", []byte("#cloud-config")))
	process.Eventually(j, "the cloud has made the machine", func() bool { return j.counts().Machines.Created == created+1 })
	process.Eventually(j, "the network is not deleted before its machines", func() bool {
		answer := j.deleteCluster()
		if answer.GetState() == gone {
			j.Fatalf("the cluster: %v", answer)
		}
		return answer.GetStatus() == failure
	})
	j.faults(api.Faults{DeletionDelay: "1h"})
	process.Eventually(j, "the machine is being deleted in the cloud", func() bool {
		answer, err := j.machines.DeleteMachine(j.soon(), &infrastructurev1alpha1.DeleteMachineRequest{Subject: subject("cp-4-id")})
		if err != nil || answer.GetState() != deleting {
			j.Fatalf("%v, %v", answer, err)
		}
		return j.counts().Requests["DELETE /machines/{id}"] > 0 && len(running(j.T, filepath.Join(j.directory, "machines", "cp-4-id"))) > 0
	})
	j.provider.Kill()
	killAll(j.T, j.directory)
	j.restart()
	answer, err := j.machines.DeleteMachine(j.soon(), &infrastructurev1alpha1.DeleteMachineRequest{Subject: subject("cp-4-id")})
	if err != nil || answer.GetState() != deleting {
		j.Fatalf("a deletion that was killed: %v, %v", answer, err)
	}
	j.faults(api.Faults{})
	j.deleteMachine("cp-4-id", "")
	if answer := j.reconcileMachine(machine("cp-5-id", nil)); answer.GetPhase() != provisioning {
		j.Errorf("a machine without bootstrap data: %v", answer)
	}
	j.deleteMachine("cp-5-id", "")
	process.Eventually(j, "the cluster is gone", func() bool { return j.deleteCluster().GetState() == gone })
	j.checkMachines(0, created+1)
	if networks := j.counts().Networks; networks.Exist != 0 || networks.Created != 1 {
		j.Errorf("networks: %+v", networks)
	}
	for _, kind := range []string{"clusters", "machines"} {
		left, err := os.ReadDir(filepath.Join(j.directory, kind))
		if err != nil || len(left) != 0 {
			j.Errorf("left of %s: %v, %v", kind, left, err)
		}
	}
}
