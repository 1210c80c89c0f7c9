// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/process"
)

// container is a folder that has what a container of a Job finds in /hookgate, /manifests and its PATH.
type container struct {
	*jobServer
	dir string
}

// story makes an example's HookJob of that name, and the kubeconfig of the Cluster team/NAME, which is for the server.
func (s *jobServer) story(file, name string) (*container, registry.Answerer) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "jobs", file))
	if err != nil {
		s.t.Fatal(err)
	}
	o := &v1alpha1.HookJob{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if err := yaml.UnmarshalStrict([]byte(document), o); err != nil {
			s.t.Fatal(err)
		}
		if o.Name == name {
			break
		}
	}
	if err := s.client.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(kubeconfigOf(s.t, s.config))
	if err != nil {
		s.t.Fatal(err)
	}
	s.create(&corev1.Secret{Data: map[string][]byte{"value": kubeconfig}}, name+"-kubeconfig", "team")
	c := &container{s, s.t.TempDir()}
	for _, folder := range []string{"hookgate", "manifests", "bin", "dev"} {
		if err := os.Mkdir(filepath.Join(c.dir, folder), 0o700); err != nil {
			s.t.Fatal(err)
		}
	}
	return c, s.replica(o, s.cluster(nil))
}

// run runs the containers of a Job on this machine, as the kubelet would, while meanwhile is called. It returns how they
// end, and with which message.
func (c *container) run(job *batchv1.Job, meanwhile func()) (exitCode int32, message string) {
	c.t.Helper()
	secret := &corev1.Secret{}
	if err := c.client.Get(c.t.Context(), client.ObjectKeyFromObject(job), secret); err != nil {
		c.t.Fatal(err)
	}
	for name, text := range secret.Data {
		c.write("hookgate/"+name, string(text))
	}
	ended := make(chan error)
	go func() { ended <- c.containers(&job.Spec.Template.Spec) }()
	meanwhile()
	err := <-ended
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		exitCode = int32(exit.ExitCode())
	} else if err != nil {
		c.t.Fatal(err)
	}
	said, err := os.ReadFile(filepath.Join(c.dir, "dev", "termination-log"))
	if err != nil {
		c.t.Fatal(err)
	}
	return exitCode, string(said)
}

// containers runs the containers of a Pod, one after the other, until one fails.
func (c *container) containers(pod *corev1.PodSpec) error {
	paths := strings.NewReplacer("/hookgate/", c.dir+"/hookgate/", "/manifests/", c.dir+"/manifests/",
		"/dev/termination-log", c.dir+"/dev/termination-log", "/sonobuoy", c.dir+"/bin/sonobuoy")
	for _, of := range slices.Concat(pod.InitContainers, pod.Containers) {
		command := slices.Concat(of.Command, of.Args)
		for i := range command {
			command[i] = paths.Replace(command[i])
		}
		cmd := exec.CommandContext(c.t.Context(), command[0], command[1:]...)
		cmd.Env = []string{"HOME=" + c.dir, "PATH=" + strings.Join([]string{c.dir + "/bin", apiServer.BinaryAssetsDirectory, os.Getenv("PATH")}, ":")}
		for _, v := range of.Env {
			cmd.Env = append(cmd.Env, v.Name+"="+paths.Replace(v.Value))
		}
		out, err := cmd.CombinedOutput()
		if c.t.Logf("%s: %s", of.Name, out); err != nil {
			return err
		}
	}
	return nil
}

// fails runs the containers of a Job, which fail: Kubernetes tries again.
func (c *container) fails(job *batchv1.Job, want string, meanwhile func()) {
	c.t.Helper()
	if exitCode, message := c.run(job, meanwhile); exitCode == 0 || message != want {
		c.t.Errorf("exit status %d: %s, want %s", exitCode, message, want)
	}
}

// succeeds runs the containers of a Job, for which the hook waits.
func (c *container) succeeds(l registry.Answerer, request proto.Message, job *batchv1.Job, want string, meanwhile func()) {
	c.t.Helper()
	exitCode, message := c.run(job, meanwhile)
	c.end(job, exitCode, message)
	c.awaits(l, request, "SUCCESS: "+want)
}

func (c *container) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o700); err != nil {
		c.t.Fatal(err)
	}
}

// waits fails unless the hook waits for the Job.
func (c *container) waits(l registry.Answerer, request proto.Message, job *batchv1.Job) {
	c.t.Helper()
	if got, want := c.say(l, request), "Job jobs/"+job.Name+" runs"; !strings.HasPrefix(got, "SUCCESS, again after ") || !strings.HasSuffix(got, want) {
		c.t.Errorf("got %s, want %s", got, want)
	}
}

// The Jobs of docs/stories.md do what they say to a workload cluster, and the hook waits for it. Their scripts run on this
// machine. The server is the workload cluster, too.
func TestStoriesByJobs(t *testing.T) {
	if apiServer == nil {
		t.Skipf("%s is not set", assetsVariable)
	}
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("the scripts need jq")
	}
	s := newJobServer(t)
	for name, run := range map[string]func(*jobServer){
		"CloudProviderBeforeUpgrade": storyCloudProvider, "ConformanceAfterUpgrade": storyConformance, "BackupBeforeDelete": storyBackup,
	} {
		t.Run(name, func(t *testing.T) {
			of := *s
			of.t = t
			run(&of)
		})
	}
}

func storyCloudProvider(s *jobServer) {
	const name = "cloud-provider-upgrade"
	c, l := s.story("cloud-provider.yaml", name)
	request := upgradeOf(name, "v1.37.1")
	c.say(l, request)
	job := c.job(name)
	c.fails(job, "the ConfigMap cloud-provider has no v1.37.yaml\n", func() { c.waits(l, request, job) })

	c.write("manifests/v1.37.yaml", `
apiVersion: v1
kind: ServiceAccount
metadata: {name: ccm, namespace: kube-system}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ccm, namespace: kube-system}
spec:
  selector: {matchLabels: {app: ccm}}
  template: {metadata: {labels: {app: ccm}}, spec: {containers: [{name: ccm, image: example.com/ccm}]}}
`)
	c.succeeds(l, request, job, "the cloud provider for v1.37 runs", func() {
		set := object(c.t, "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: ccm, namespace: kube-system}")
		eventually(c.t, "the DaemonSet is applied", func() (string, bool) {
			err := c.client.Get(c.t.Context(), client.ObjectKeyFromObject(set), set)
			return fmt.Sprint(err), err == nil
		})
		c.waits(l, request, job)
		runs := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":1,"desiredNumberScheduled":1,
			"currentNumberScheduled":1,"numberMisscheduled":0,"numberReady":1,"numberAvailable":1,"updatedNumberScheduled":1}}`))
		if err := c.client.Status().Patch(c.t.Context(), set, runs); err != nil {
			c.t.Fatal(err)
		}
	})
}

func storyConformance(s *jobServer) {
	const name = "conformance"
	c, l := s.story("conformance.yaml", name)
	c.create(&corev1.Namespace{}, "sonobuoy", "")
	c.create(&corev1.ServiceAccount{}, "default", "sonobuoy")
	sonobuoy := func(result string) { // what it leaves in the cluster
		c.write("bin/sonobuoy", `#!/bin/sh
case $1 in
delete) exec kubectl -n sonobuoy delete pod sonobuoy --ignore-not-found --grace-period=0 --force ;;
run) kubectl -n sonobuoy run sonobuoy --image=example.com/sonobuoy --annotations='sonobuoy.hept.io/status={"plugins":
  [{"plugin":"e2e","node":"global","status":"complete","result-status":"`+result+`"}],"status":"complete"}' ;;
esac
`)
	}
	request := &hooksv1alpha1.AfterClusterUpgradeRequest{Cluster: upgradeOf(name, "").Cluster, KubernetesVersion: "v1.36.0"}
	c.say(l, request)
	job := c.job(name)
	sonobuoy("failed")
	c.fails(job, "conformance tests: failed", func() { c.waits(l, request, job) })
	sonobuoy("passed")
	c.succeeds(l, request, job, "conformance tests: passed", func() { c.waits(l, request, job) })
}

func storyBackup(s *jobServer) {
	const name = "volume-backup"
	if _, err := envtest.InstallCRDs(s.config, envtest.CRDInstallOptions{
		MaxTime: process.ServerPatience, CRDs: []*apiextensionsv1.CustomResourceDefinition{anykind.Of("velero.io", "v1", "Backup")},
	}); err != nil {
		s.t.Fatal(err)
	}
	s.create(&corev1.Namespace{}, "velero", "")
	c, l := s.story("volume-backup.yaml", name)
	request := &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: upgradeOf(name, "").Cluster}
	c.say(l, request)
	job := c.job(name)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "BackupList"})
	velero := func(phase string) {
		eventually(c.t, "a backup begins", func() (string, bool) {
			err := c.client.List(c.t.Context(), list, client.InNamespace("velero"))
			return fmt.Sprint(len(list.Items), err), len(list.Items) == 1
		})
		c.waits(l, request, job)
		ends := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"`+phase+`"}}`))
		if err := c.client.Patch(c.t.Context(), &list.Items[0], ends); err != nil {
			c.t.Fatal(err)
		}
	}
	failed, message := c.run(job, func() { velero("PartiallyFailed") })
	if want := "Velero backup " + list.Items[0].GetName() + ": PartiallyFailed"; failed == 0 || message != want {
		c.t.Errorf("exit status %d: %s, want %s", failed, message, want)
	}
	if err := c.client.Delete(c.t.Context(), &list.Items[0]); err != nil {
		c.t.Fatal(err)
	}
	exitCode, message := c.run(job, func() { velero("Completed") })
	c.end(job, exitCode, message)
	c.awaits(l, request, "SUCCESS: Velero backup "+list.Items[0].GetName()+": Completed")
}
