// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
)

func compiler(t testing.TB, allowed *hookjob.Allowed) *hookjob.Compiler {
	t.Helper()
	hooks, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	cel, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	types, err := policy.NewTypes(hooks)
	if err != nil {
		t.Fatal(err)
	}
	return hookjob.NewCompiler(hooks, cel, types, allowed, nil)
}

const valid = `
hook: BeforeClusterUpgrade
once: request.cluster.metadata.uid + "/" + request.toKubernetesVersion
jobTemplate:
  spec:
    template:
      spec:
        restartPolicy: Never
        containers: [{name: backup, image: example.com/backup}]
`

// Every mistake is refused, by its field.
func TestMistakes(t *testing.T) {
	jobs := &hookjob.Allowed{Namespaces: []string{"jobs", hookjob.BesideCluster}, ServiceAccounts: []string{"backup"}}
	pod := func(spec string) string {
		return "hook: BeforeClusterUpgrade\njobTemplate: {spec: {template: {spec: {" + spec + "}}}}\n"
	}
	const containers = "restartPolicy: Never, containers: [{name: a, image: b}]"
	for name, tt := range map[string]struct {
		reason  string
		allowed *hookjob.Allowed
		spec    string
		want    string
	}{
		"Valid":         {"nothing is wrong", jobs, valid, ""},
		"BesideCluster": {"where the operator allows it", jobs, valid + "namespace: Cluster\n", ""},
		"Account":       {"one that is allowed", jobs, pod(containers + ", serviceAccountName: backup"), ""},
		"Off":           {"the operator has to turn it on", &hookjob.Allowed{}, valid, "spec: Forbidden: this gateway runs no Jobs: to run Jobs, it needs a cluster that it may write to, and --hook-jobs-namespace"},
		"NoHook":        {"", jobs, strings.Replace(valid, "BeforeClusterUpgrade", `""`, 1), "spec.hook: Required value: must be the name of a hook"},
		"Misspelt":      {"", jobs, strings.Replace(valid, "BeforeClusterUpgrade", "BeforeClusterUpgrad", 1), `spec.hook: Invalid value: "BeforeClusterUpgrad": not a hook that a Job can answer: did you mean "BeforeClusterUpgrade"?`},
		"OtherHook":     {"a Job makes no patches", jobs, strings.Replace(valid, "BeforeClusterUpgrade", "GeneratePatches", 1), `spec.hook: Unsupported value: "GeneratePatches": supported values: "`},
		"Once":          {"once is a text", jobs, strings.Replace(valid, `request.cluster.metadata.uid + "/" + request.toKubernetesVersion`, "1 + 1", 1), "spec.once: Invalid value: must be a text, but is of type int"},
		"UnknownMember": {"once is checked with the types of the hook", jobs, strings.Replace(valid, "toKubernetesVersion", "to", 1), "spec.once: Invalid value: "},
		"Namespace":     {"", jobs, valid + "namespace: kube-system\n", `spec.namespace: Unsupported value: "kube-system": supported values: "jobs", "Cluster"`},
		"Retry":         {"", jobs, valid + "retryAfterSeconds: 0\n", "spec.retryAfterSeconds: Invalid value: 0: must be between 1 and 86400"},
		"Deadline":      {"", jobs, valid + "deadline: 200h\n", `spec.deadline: Invalid value: "200h0m0s": must be between 1s and 168h0m0s`},
		"OnFailure":     {"", jobs, valid + "onFailure: Ignore\n", `spec.onFailure: Unsupported value: "Ignore": supported values: "Hold", "Fail"`},
		"Workload":      {"", jobs, valid + "workloadCluster: Token\n", `spec.workloadCluster: Unsupported value: "Token": supported values: "None", "Kubeconfig"`},
		"TooEarly":      {"a kubeconfig comes with the control plane", jobs, strings.NewReplacer("BeforeClusterUpgrade", "BeforeClusterCreate", " + \"/\" + request.toKubernetesVersion", "").Replace(valid) + "workloadCluster: Kubeconfig\n", "spec.workloadCluster: Forbidden: there is no workload cluster before it is created"},
		"TooLate": {"what is gone with the Cluster", jobs, strings.NewReplacer("BeforeClusterUpgrade", "AfterClusterDelete", " + \"/\" + request.toKubernetesVersion", "").Replace(valid) + "workloadCluster: Kubeconfig\nnamespace: Cluster\n",
			"spec.namespace: Forbidden: when the Cluster is gone, its namespace may be gone, too: name another namespace\nspec.workloadCluster: Forbidden: the workload cluster is gone"},
		"NobodyWaits":    {"", jobs, strings.NewReplacer("BeforeClusterUpgrade", "AfterControlPlaneInitialized", " + \"/\" + request.toKubernetesVersion", "").Replace(valid) + "onFailure: Hold\nretryAfterSeconds: 3\n", "spec.onFailure: Forbidden: Cluster API does not wait for AfterControlPlaneInitialized\nspec.retryAfterSeconds: Forbidden: Cluster API does not wait for AfterControlPlaneInitialized"},
		"NoTemplate":     {"", jobs, "hook: BeforeClusterUpgrade\n", "spec.jobTemplate: Required value: must be a JobTemplateSpec of batch/v1"},
		"LargeTemplate":  {"", jobs, pod(containers + ", hostname: " + strings.Repeat("a", limits.JobTemplateBytes)), "spec.jobTemplate: Too long: may not be more than 65536 bytes"},
		"UnknownField":   {"nothing is dropped silently", jobs, pod(containers + ", imagePullSecret: x"), `spec.jobTemplate: Invalid value: unknown field "spec.template.spec.imagePullSecret": did you mean "imagePullSecrets"?`},
		"WrongType":      {"", jobs, pod("restartPolicy: 3"), "spec.jobTemplate: Invalid value: json: cannot unmarshal number into Go struct field"},
		"RestartPolicy":  {"", jobs, pod("containers: [{name: a, image: b}]"), "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: must be Never or OnFailure"},
		"Always":         {"", jobs, pod("restartPolicy: Always, containers: [{name: a, image: b}]"), `spec.jobTemplate.spec.template.spec.restartPolicy: Unsupported value: "Always": supported values: "Never", "OnFailure"`},
		"NoContainer":    {"", jobs, pod("restartPolicy: Never"), "spec.jobTemplate.spec.template.spec.containers: Required value: must have a container"},
		"NoImage":        {"", jobs, pod("restartPolicy: Never, containers: [{name: a}]"), "spec.jobTemplate.spec.template.spec.containers[0].image: Required value: must be the name of an image"},
		"Privileged":     {"Pods are restricted", jobs, pod("restartPolicy: Never, containers: [{name: a, image: b, securityContext: {privileged: true}}]"), `spec.jobTemplate.spec.template.spec: Forbidden: violates the Pod Security Standard "restricted": privileged (container "a" must not set securityContext.privileged=true)`},
		"HostPath":       {"", jobs, pod(containers + ", volumes: [{name: a, hostPath: {path: /}}]"), `spec.jobTemplate.spec.template.spec: Forbidden: violates the Pod Security Standard "restricted": restricted volume types (volume "a" uses restricted volume type "hostPath")`},
		"Baseline":       {"the operator may allow more", &hookjob.Allowed{Namespaces: []string{"jobs"}, PodSecurity: "baseline"}, pod("restartPolicy: Never, containers: [{name: a, image: b, securityContext: {runAsUser: 0}}]"), ""},
		"OtherAccount":   {"", jobs, pod(containers + ", serviceAccountName: admin"), "spec.jobTemplate.spec.template.spec.serviceAccountName: Forbidden: the gateway was not started with --hook-jobs-service-account=admin"},
		"DefaultAccount": {"", jobs, pod(containers + ", automountServiceAccountToken: true"), "spec.jobTemplate.spec.template.spec.automountServiceAccountToken: Forbidden: name a serviceAccountName"},
		"ProjectedToken": {
			"a Pod without an account has no credentials of the cluster", jobs,
			pod(containers + ", volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: t}}, {configMap: {name: c}}, {podCertificate: {signerName: a/b, keyType: ED25519}}]}}]"),
			`spec.jobTemplate.spec.template.spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: name a serviceAccountName
spec.jobTemplate.spec.template.spec.volumes[0].projected.sources[2].podCertificate: Forbidden: name a serviceAccountName`,
		},
		"TokenOfAccount": {"one that is allowed", jobs, pod(containers + ", serviceAccountName: backup, volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: t}}]}}]"), ""},
		"Gateways": {
			"what the gateway decides", jobs,
			"hook: BeforeClusterUpgrade\njobTemplate: {metadata: {name: a, labels: {hookgate.dev/hook-job: b}}, spec: {suspend: false, selector: {}, manualSelector: true, managedBy: a/b, activeDeadlineSeconds: 1, ttlSecondsAfterFinished: 0, template: {spec: {" +
				"restartPolicy: Never, serviceAccount: a, volumes: [{name: hookgate, emptyDir: {}}], containers: [{name: a, image: b, env: [{name: HOOKGATE_X, value: z}], volumeMounts: [{name: x, mountPath: /hookgate/x}]}]}}}}\n",
			`spec.jobTemplate.metadata: Forbidden: may have only labels and annotations
spec.jobTemplate.metadata.labels[hookgate.dev/hook-job]: Forbidden: only the gateway sets labels and annotations of hookgate.dev
spec.jobTemplate.spec.suspend: Forbidden: the gateway suspends and starts Jobs
spec.jobTemplate.spec.selector: Forbidden: Kubernetes makes the selector
spec.jobTemplate.spec.manualSelector: Forbidden: Kubernetes makes the selector
spec.jobTemplate.spec.managedBy: Forbidden: only the Job controller of Kubernetes may manage these Jobs
spec.jobTemplate.spec.activeDeadlineSeconds: Forbidden: set spec.deadline instead
spec.jobTemplate.spec.ttlSecondsAfterFinished: Invalid value: 0: must be at least 1m0s
spec.jobTemplate.spec.template.spec.containers[0].env[0].name: Forbidden: only the gateway sets variables that begin with HOOKGATE_
spec.jobTemplate.spec.template.spec.containers[0].volumeMounts[0].mountPath: Forbidden: the gateway mounts the files of the request there
spec.jobTemplate.spec.template.spec.volumes[0].name: Forbidden: the gateway adds a volume of this name
spec.jobTemplate.spec.template.spec.serviceAccount: Forbidden: write serviceAccountName`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.HookJob{}
			if err := yaml.UnmarshalStrict([]byte(tt.spec), &o.Spec); err != nil {
				t.Fatal(err)
			}
			o.Name = "j"
			reg, errs := compiler(t, tt.allowed).Compile(o)
			texts := make([]string, len(errs))
			for i, e := range errs {
				texts[i] = e.Error()
			}
			got := strings.Join(texts, "\n")
			if got != tt.want && (tt.want == "" || !strings.HasPrefix(got, tt.want)) {
				t.Errorf("%s: got\n%s\nwant\n%s", tt.reason, got, tt.want)
			}
			if got == "" && (reg.InProcess.Kind() != "HookJob" || reg.Handlers[0].Name != "job") {
				t.Errorf("the registration is %+v", reg)
			}
		})
	}
}
