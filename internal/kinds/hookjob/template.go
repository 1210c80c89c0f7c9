// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podsecurity "k8s.io/pod-security-admission/api"
	podsecuritychecks "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/json"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds"
)

// What every container of a Job has.
const (
	// FilesPath is where the files of the request are, and filesVolume the name of their volume.
	FilesPath   = "/hookgate"
	filesVolume = "hookgate"
	// variablePrefix is that of the environment variables that the gateway sets.
	variablePrefix = "HOOKGATE_"
	// ownPrefix is that of the labels and annotations that the gateway sets.
	ownPrefix = "hookgate.dev/"
)

// template returns what a Job is made of: the template of a HookJob, with what it leaves out of security contexts.
func (in *compilation) template(raw []byte, path *field.Path) *batchv1.JobTemplateSpec {
	t := &batchv1.JobTemplateSpec{}
	switch {
	case len(raw) == 0 || string(raw) == "null":
		in.errs = append(in.errs, field.Required(path, "must be a JobTemplateSpec of batch/v1"))
		return t
	case len(raw) > limits.JobTemplateBytes:
		in.errs = append(in.errs, field.TooLong(path, "", limits.JobTemplateBytes))
		return t
	}
	strict, err := json.UnmarshalStrict(raw, t)
	if err != nil {
		in.errs = append(in.errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
		return t
	}
	for _, err := range strict {
		in.errs = append(in.errs, field.Invalid(path, field.OmitValueType{}, kinds.FieldError(err, t).Error()))
	}
	in.metadata(&t.ObjectMeta, path.Child("metadata"))
	in.jobSpec(&t.Spec, path.Child("spec"))
	at := path.Child("spec", "template")
	in.metadata(&t.Spec.Template.ObjectMeta, at.Child("metadata"))
	pod := &t.Spec.Template.Spec
	before := len(in.errs)
	in.pod(pod, at.Child("spec"))
	if len(in.errs) == before {
		in.secure(&t.Spec.Template, at.Child("spec"))
	}
	return t
}

// metadata refuses all but labels and annotations that are not the gateway's own.
func (in *compilation) metadata(m *metav1.ObjectMeta, path *field.Path) {
	rest := *m
	rest.Labels, rest.Annotations = nil, nil
	if !reflect.DeepEqual(rest, metav1.ObjectMeta{}) {
		in.forbidf(path, "may have only labels and annotations")
	}
	in.foreign(m.Labels, path.Child("labels"))
	in.foreign(m.Annotations, path.Child("annotations"))
}

// foreign refuses labels or annotations that the gateway sets.
func (in *compilation) foreign(names map[string]string, path *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.HasPrefix(name, ownPrefix) {
			in.forbidf(path.Key(name), "only the gateway sets labels and annotations of %s", strings.TrimSuffix(ownPrefix, "/"))
		}
	}
}

// jobSpec refuses what the gateway decides.
func (in *compilation) jobSpec(s *batchv1.JobSpec, path *field.Path) {
	if s.Suspend != nil {
		in.forbidf(path.Child("suspend"), "the gateway suspends and starts Jobs")
	}
	if s.Selector != nil {
		in.forbidf(path.Child("selector"), "Kubernetes makes the selector")
	}
	if s.ManualSelector != nil {
		in.forbidf(path.Child("manualSelector"), "Kubernetes makes the selector")
	}
	if s.ManagedBy != nil {
		in.forbidf(path.Child("managedBy"), "only the Job controller of Kubernetes may manage these Jobs")
	}
	if s.ActiveDeadlineSeconds != nil {
		in.forbidf(path.Child("activeDeadlineSeconds"), "set spec.deadline instead")
	}
	if kept := s.TTLSecondsAfterFinished; kept != nil && int64(*kept) < int64(limits.JobKept.Seconds()) {
		in.errs = append(in.errs, field.Invalid(path.Child("ttlSecondsAfterFinished"), *kept,
			"must be at least "+limits.JobKept.String()))
	}
}

// pod refuses what the gateway decides, and what leads beyond the container.
func (in *compilation) pod(s *corev1.PodSpec, path *field.Path) {
	policies := []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}
	switch at := path.Child("restartPolicy"); {
	case s.RestartPolicy == "":
		in.errs = append(in.errs, field.Required(at, "must be Never or OnFailure"))
	case !slices.Contains(policies, s.RestartPolicy):
		in.errs = append(in.errs, field.NotSupported(at, s.RestartPolicy, policies))
	}
	if len(s.Containers) == 0 {
		in.errs = append(in.errs, field.Required(path.Child("containers"), "must have a container"))
	}
	if len(s.EphemeralContainers) > 0 {
		in.forbidf(path.Child("ephemeralContainers"), "a template cannot have ephemeral containers")
	}
	for i := range s.InitContainers {
		in.container(&s.InitContainers[i], path.Child("initContainers").Index(i))
	}
	for i := range s.Containers {
		in.container(&s.Containers[i], path.Child("containers").Index(i))
	}
	for i := range s.Volumes {
		if s.Volumes[i].Name == filesVolume {
			in.forbidf(path.Child("volumes").Index(i).Child("name"), "the gateway adds a volume of this name")
		}
	}
	in.account(s, path)
}

// account refuses service accounts that are not allowed, and their tokens in Pods without one.
func (in *compilation) account(s *corev1.PodSpec, path *field.Path) {
	if s.DeprecatedServiceAccount != "" {
		in.forbidf(path.Child("serviceAccount"), "write serviceAccountName")
	}
	switch at := path.Child("serviceAccountName"); {
	case s.ServiceAccountName != "":
		if in.allowed != nil && !slices.Contains(in.allowed.ServiceAccounts, s.ServiceAccountName) {
			in.forbidf(at, "the gateway was not started with --hook-jobs-service-account=%s", s.ServiceAccountName)
		}
		return
	case s.AutomountServiceAccountToken != nil && *s.AutomountServiceAccountToken:
		in.forbidf(path.Child("automountServiceAccountToken"), "name a serviceAccountName")
	}
	s.AutomountServiceAccountToken = new(false)
	in.noCredentials(s.Volumes, path.Child("volumes"))
}

// noCredentials refuses volumes with credentials of the Pod, which have nothing to do with automounting.
func (in *compilation) noCredentials(volumes []corev1.Volume, path *field.Path) {
	for i := range volumes {
		if volumes[i].Projected == nil {
			continue
		}
		sources := path.Index(i).Child("projected", "sources")
		for k := range volumes[i].Projected.Sources {
			switch source := &volumes[i].Projected.Sources[k]; {
			case source.ServiceAccountToken != nil:
				in.forbidf(sources.Index(k).Child("serviceAccountToken"), "name a serviceAccountName")
			case source.PodCertificate != nil:
				in.forbidf(sources.Index(k).Child("podCertificate"), "name a serviceAccountName")
			}
		}
	}
}

func (in *compilation) container(c *corev1.Container, path *field.Path) {
	if c.Name == "" {
		in.errs = append(in.errs, field.Required(path.Child("name"), "must be the name of the container"))
	}
	if c.Image == "" {
		in.errs = append(in.errs, field.Required(path.Child("image"), "must be the name of an image"))
	}
	for i := range c.Env {
		if strings.HasPrefix(c.Env[i].Name, variablePrefix) {
			in.forbidf(path.Child("env").Index(i).Child("name"), "only the gateway sets variables that begin with %s",
				variablePrefix)
		}
	}
	for i := range c.VolumeMounts {
		if at := c.VolumeMounts[i].MountPath; at == FilesPath || strings.HasPrefix(at, FilesPath+"/") {
			in.forbidf(path.Child("volumeMounts").Index(i).Child("mountPath"),
				"the gateway mounts the files of the request there")
		}
	}
}

// secure fills in what a Pod of level restricted must state, and refuses what its level does not allow.
func (in *compilation) secure(t *corev1.PodTemplateSpec, path *field.Path) {
	level := podsecurity.LevelRestricted
	if in.allowed != nil {
		level = cmp.Or(in.allowed.PodSecurity, level)
	}
	if level == podsecurity.LevelRestricted {
		restrict(&t.Spec)
	}
	evaluator, err := podsecuritychecks.NewEvaluator(podsecuritychecks.DefaultChecks(), nil)
	if err != nil {
		in.errs = append(in.errs, field.InternalError(path, err))
		return
	}
	found := podsecuritychecks.AggregateCheckResults(evaluator.EvaluatePod(
		podsecurity.LevelVersion{Level: level, Version: podsecurity.LatestVersion()}, &t.ObjectMeta, &t.Spec))
	if !found.Allowed {
		in.forbidf(path, "violates the Pod Security Standard %q: %s", level, found.ForbiddenDetail())
	}
}

// restrict fills in what a restricted Pod must state.
func restrict(s *corev1.PodSpec) {
	if s.SecurityContext == nil {
		s.SecurityContext = &corev1.PodSecurityContext{}
	}
	if s.SecurityContext.RunAsNonRoot == nil {
		s.SecurityContext.RunAsNonRoot = new(true)
	}
	if s.SecurityContext.SeccompProfile == nil {
		s.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range containers {
			if containers[i].SecurityContext == nil {
				containers[i].SecurityContext = &corev1.SecurityContext{}
			}
			c := containers[i].SecurityContext
			if c.AllowPrivilegeEscalation == nil {
				c.AllowPrivilegeEscalation = new(false)
			}
			if c.Capabilities == nil {
				c.Capabilities = &corev1.Capabilities{}
			}
			if len(c.Capabilities.Drop) == 0 {
				c.Capabilities.Drop = []corev1.Capability{"ALL"}
			}
		}
	}
}
