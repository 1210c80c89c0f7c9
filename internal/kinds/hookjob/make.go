// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// create makes the Job of a run, suspended, or returns the one that is there. What its Secret will hold is read before,
// so that no Job is made that cannot start.
func (j *Job) create(ctx context.Context, r *run) (*batchv1.Job, error) {
	if _, err := j.files(ctx, r); err != nil {
		return nil, err
	}
	job, err := j.newJob(r)
	if err != nil {
		return nil, err
	}
	err = j.cluster.API.Create(ctx, job)
	if apierrors.IsAlreadyExists(err) { // another replica was faster, or the cache is not there yet
		job = &batchv1.Job{}
		err = j.cluster.API.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: r.job}, job)
	}
	return job, err
}

// newJob returns the Job of a run.
func (j *Job) newJob(r *run) (*batchv1.Job, error) {
	t := j.template.DeepCopy()
	variables, err := j.variables(r)
	if err != nil {
		return nil, err
	}
	job := &batchv1.Job{Spec: t.Spec}
	job.Namespace, job.Name = r.namespace, r.job
	job.OwnerReferences = []metav1.OwnerReference{j.owner()}
	labels := map[string]string{HookJobLabel: j.name, hookLabel: j.hook.Hook}
	annotations := map[string]string{
		onceAnnotation: r.once, clusterAnnotation: r.cluster.String(), clusterUIDAnnotation: r.clusterUID,
	}
	if key := r.movedKey(); key != "" {
		annotations[movedAnnotation] = key
	}
	if r.cluster.Name != "" && len(r.cluster.Name) <= 63 {
		labels[clusterv1.ClusterNameLabel] = r.cluster.Name
	}
	if r.machine != nil {
		labels[machineLabel] = string(r.machine.GetUID())
		annotations[machineAnnotation] = r.machine.GetNamespace() + "/" + r.machine.GetName()
	}
	job.Labels, job.Annotations = merged(t.Labels, labels), merged(t.Annotations, annotations)
	job.Spec.Suspend = new(true)
	job.Spec.ActiveDeadlineSeconds = new(int64(j.deadline.Seconds()))
	job.Spec.TTLSecondsAfterFinished = nil // set once its success is recorded
	job.Annotations[keptAnnotation] = strconv.Itoa(j.kept())
	pod := &job.Spec.Template
	pod.Labels = merged(pod.Labels, map[string]string{HookJobLabel: j.name})
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name:         filesVolume,
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: r.job}},
	})
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: filesVolume, MountPath: FilesPath, ReadOnly: true})
			c.Env = append(slices.Clone(variables), c.Env...)
		}
	}
	return job, nil
}

func merged(a, b map[string]string) map[string]string {
	all := make(map[string]string, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// kept is for how many seconds a Job is kept once its success is recorded.
func (j *Job) kept() int {
	if stated := j.template.Spec.TTLSecondsAfterFinished; stated != nil {
		return int(*stated)
	}
	return int(limits.DefaultJobKept.Seconds())
}

// variables returns the environment variables of the containers.
func (j *Job) variables(r *run) ([]corev1.EnvVar, error) {
	all := []corev1.EnvVar{
		{Name: variablePrefix + "HOOK", Value: j.hook.Hook},
		{Name: variablePrefix + "CLUSTER_NAMESPACE", Value: r.cluster.Namespace},
		{Name: variablePrefix + "CLUSTER_NAME", Value: r.cluster.Name},
	}
	if r.machine != nil {
		all = append(all, corev1.EnvVar{Name: variablePrefix + "MACHINE_NAME", Value: r.machine.GetName()},
			corev1.EnvVar{Name: variablePrefix + "NODE_NAME", Value: nodeName(r.machine)},
			corev1.EnvVar{Name: variablePrefix + "PROVIDER_ID", Value: providerID(r.machine)})
	}
	if j.kubeconfig {
		all = append(all, corev1.EnvVar{Name: "KUBECONFIG", Value: FilesPath + "/" + kubeconfigFile})
	}
	about, _ := r.message.(interface{ GetSettings() map[string]string })
	if about == nil {
		return all, nil
	}
	size, settings, names := 0, about.GetSettings(), map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		name := variablePrefix + "SETTING_" + variable(key)
		if other, taken := names[name]; taken {
			return nil, failuref("settings %q and %q would both be variable %s: rename one of them", other, key, name)
		}
		if size += len(name) + len(settings[key]); size > limits.JobSettingsBytes {
			return nil, failuref("the settings have more than %d bytes, which is too much for environment variables",
				limits.JobSettingsBytes)
		}
		names[name] = key
		// Kubernetes would replace $(NAME).
		all = append(all, corev1.EnvVar{Name: name, Value: strings.ReplaceAll(settings[key], "$", "$$")})
	}
	return all, nil
}

// variable returns what stands for the name of a setting in that of a variable.
func variable(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, strings.ToUpper(name))
}

// The names of the files of a container.
const (
	requestFile    = "request.json"
	kubeconfigFile = "kubeconfig"
)

// files returns the files of the containers.
func (j *Job) files(ctx context.Context, r *run) (map[string][]byte, error) {
	files := map[string][]byte{requestFile: r.request}
	if r.machine != nil {
		machine := r.machine.DeepCopy()
		machine.SetManagedFields(nil)
		text, err := machine.MarshalJSON()
		if err != nil {
			return nil, err
		}
		addresses, _, _ := unstructured.NestedSlice(r.machine.Object, "status", "addresses")
		listed, err := json.Marshal(addresses)
		if err != nil {
			return nil, err
		}
		files["machine.json"], files["addresses.json"] = text, listed
		files["node-name"] = []byte(nodeName(r.machine))
	}
	if update, ok := r.message.(*hooksv1alpha1.UpdateMachineRequest); ok {
		desired := update.GetDesired()
		files["desired-machine.json"] = desired.GetMachine().GetRaw()
		files["desired-infrastructure-machine.json"] = desired.GetInfrastructureMachine().GetRaw()
		files["desired-bootstrap-config.json"] = desired.GetBootstrapConfig().GetRaw()
	}
	if j.kubeconfig {
		text, err := j.cluster.kubeconfigOf(ctx, r.cluster)
		if err != nil {
			return nil, err
		}
		files[kubeconfigFile] = text
	}
	size := 0
	for _, text := range files {
		size += len(text)
	}
	if size > limits.JobFilesBytes {
		return nil, failuref("the files of Job %s have %d bytes: at most %d fit into its Secret", r, size,
			limits.JobFilesBytes)
	}
	return files, nil
}

func nodeName(machine *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(machine.Object, "status", "nodeRef", "name")
	return name
}

func providerID(machine *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(machine.Object, "spec", "providerID")
	return id
}

// kubeconfigOf returns the kubeconfig that Cluster API has made for a Cluster.
func (c *Cluster) kubeconfigOf(ctx context.Context, of types.NamespacedName) ([]byte, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: of.Namespace, Name: of.Name + "-kubeconfig"}
	if err := c.API.Get(ctx, key, secret); err != nil {
		return nil, c.explain("read the kubeconfig of Cluster "+of.String(), err)
	}
	text := secret.Data["value"]
	if len(text) == 0 {
		return nil, failuref("Secret %s has no kubeconfig", key)
	}
	return text, nil
}

// start gives a Job its Secret, and lets it run. It may be called again at any point.
func (j *Job) start(ctx context.Context, r *run, job *batchv1.Job) error {
	files, err := j.files(ctx, r)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{Data: files, Immutable: new(true)}
	secret.Namespace, secret.Name = job.Namespace, job.Name
	secret.Labels = map[string]string{HookJobLabel: j.name}
	secret.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: job.Name, UID: job.UID,
	}}
	err = j.cluster.API.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		if err = j.cluster.replaced(ctx, secret); err == nil {
			err = client.IgnoreAlreadyExists(j.cluster.API.Create(ctx, secret))
		}
	}
	if err == nil {
		err = j.cluster.block(ctx, job)
	}
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:"true"}},"spec":{"suspend":false}}`, job.UID,
		startedAnnotation)
	return j.cluster.API.Patch(ctx, job.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// replaced deletes the Secret of an earlier Job, which had the same name.
func (c *Cluster) replaced(ctx context.Context, wanted *corev1.Secret) error {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := c.API.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	if err != nil || len(found.OwnerReferences) == 1 && found.OwnerReferences[0].UID == wanted.OwnerReferences[0].UID {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(c.API.Delete(ctx, found, client.Preconditions{UID: &found.UID}))
}

// isOwn reports whether an error needs no more explanation.
func isOwn(err error) bool {
	var refused *failure
	var known *hook.Error
	return errors.As(err, &refused) || errors.As(err, &known) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}
