// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

const (
	namespace     = "hookgate-system"
	providerLabel = "cluster.x-k8s.io/provider"
	provider      = "runtime-extension-hookgate"
)

// each runs a test on the guide's installation, without and with metrics outside of the Pod.
func each(t *testing.T, test func(t *testing.T, objects []object)) {
	t.Helper()
	for name, component := range map[string]bool{"Directory": false, "Metrics": true} {
		t.Run(name, func(t *testing.T) { test(t, install(t, component)) })
	}
}

// TestOverlay checks that the overlay is complete without the guide's additions.
func TestOverlay(t *testing.T) {
	objects := decode(t, "the overlay", kustomize(t, filepath.Join("..", "..", "deploy", "overlays", "directory")))
	var got []string
	for _, o := range objects {
		got = append(got, o.kind[strings.LastIndex(o.kind, "/")+1:]+" "+o.GetName())
	}
	slices.Sort(got)
	want := []string{
		"Certificate hookgate-ca", "Certificate hookgate-callers-ca", "Certificate hookgate-cluster-api-client", "Certificate hookgate-serving-cert",
		"ConfigMap hookgate-extension-configs", "Deployment hookgate", "Issuer hookgate-ca", "Issuer hookgate-callers-ca", "Issuer hookgate-selfsigned", "Namespace hookgate-system", "NetworkPolicy hookgate",
		"PodDisruptionBudget hookgate", "Service hookgate", "ServiceAccount hookgate",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if image := container(t, one[*appsv1.Deployment](t, objects)).Image; image != "ghcr.io/hookgate/hookgate:dev" {
		t.Errorf("image %s, want the one that `make image VERSION=dev` makes", image)
	}
	if image := container(t, one[*appsv1.Deployment](t, install(t, false))).Image; image != "ghcr.io/hookgate/hookgate:v0.1.0" {
		t.Errorf("image %s, want the one that the guide chooses", image)
	}
}

// TestObjects checks that every object has the provider's label and namespace.
func TestObjects(t *testing.T) {
	each(t, func(t *testing.T, objects []object) {
		n := one[*corev1.Namespace](t, objects)
		if n.Name != namespace {
			t.Errorf("the namespace is %s", n.Name)
		}
		for _, mode := range []string{"enforce", "audit", "warn"} {
			if got := n.Labels["pod-security.kubernetes.io/"+mode]; got != "restricted" {
				t.Errorf("Pod security of the namespace: %s is %q, want restricted", mode, got)
			}
		}
		for _, o := range objects {
			if got := o.GetLabels()[providerLabel]; got != provider {
				t.Errorf("%s %s: label %s is %q, want %s", o.kind, o.GetName(), providerLabel, got, provider)
			}
			if o.kind != "v1/Namespace" && o.GetNamespace() != namespace {
				t.Errorf("%s %s is in namespace %q", o.kind, o.GetName(), o.GetNamespace())
			}
		}
	})
}

// TestSecurity checks every field that the restricted profile covers, and more.
func TestSecurity(t *testing.T) {
	each(t, func(t *testing.T, objects []object) { checkSecurity(t, objects, false) })
}

// checkSecurity checks the Deployment; token states whether it mounts a service account token.
func checkSecurity(t *testing.T, objects []object, token bool) {
	t.Helper()
	d := one[*appsv1.Deployment](t, objects)
	pod := d.Spec.Template.Spec
	for _, account := range all[*corev1.ServiceAccount](objects) {
		if !is(account.AutomountServiceAccountToken, false) {
			t.Errorf("service account %s has a token without asking", account.Name)
		}
	}
	podContext, c := pod.SecurityContext, container(t, d)
	if podContext == nil || podContext.SeccompProfile == nil || c.SecurityContext == nil ||
		c.SecurityContext.Capabilities == nil {
		t.Fatalf("security contexts are missing: %+v, %+v", podContext, c.SecurityContext)
	}
	s := c.SecurityContext
	for name, check := range map[string]bool{
		"Pod: a token only where it is used":  is(pod.AutomountServiceAccountToken, token),
		"Pod: the service account":            pod.ServiceAccountName == d.Name,
		"Pod: no service links":               is(pod.EnableServiceLinks, false),
		"Pod: nothing of the host":            !pod.HostNetwork && !pod.HostPID && !pod.HostIPC,
		"Pod: runs as non-root":               is(podContext.RunAsNonRoot, true),
		"Pod: user of the image":              is(podContext.RunAsUser, 65532) && is(podContext.RunAsGroup, 65532) && is(podContext.FSGroup, 65532),
		"Pod: seccomp":                        podContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"container: runs as non-root":         is(s.RunAsNonRoot, true),
		"container: read-only root":           is(s.ReadOnlyRootFilesystem, true),
		"container: not privileged":           is(s.Privileged, false),
		"container: no escalation":            is(s.AllowPrivilegeEscalation, false),
		"container: no capabilities":          slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) && len(s.Capabilities.Add) == 0,
		"container: nothing undoes the Pod's": s.SeccompProfile == nil && s.RunAsUser == nil && s.RunAsGroup == nil && s.ProcMount == nil,
		"container: requests":                 !c.Resources.Requests.Cpu().IsZero() && !c.Resources.Requests.Memory().IsZero(),
		"container: limit of memory":          !c.Resources.Limits.Memory().IsZero(),
		"container: last words are kept":      c.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError,
	} {
		if !check {
			t.Errorf("%s: not so", name)
		}
	}
	bounded := map[string]bool{} // the volumes that end with the Pod, and have a limit
	for _, v := range pod.Volumes {
		if v.HostPath != nil {
			t.Errorf("volume %s is of the host", v.Name)
		}
		bounded[v.Name] = v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil
	}
	for _, m := range c.VolumeMounts {
		if !m.ReadOnly && !bounded[m.Name] {
			t.Errorf("volume %s can be written without a limit", m.Name)
		}
	}
}

func is[T comparable](p *T, want T) bool { return p != nil && *p == want }

// container returns the only container, which clusterctl requires to be named manager.
func container(t *testing.T, d *appsv1.Deployment) corev1.Container {
	t.Helper()
	pod := d.Spec.Template.Spec
	if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 || pod.Containers[0].Name != "manager" {
		t.Fatalf("containers %+v, %+v: want one, with the name manager", pod.InitContainers, pod.Containers)
	}
	c := pod.Containers[0]
	if host, rest, _ := strings.Cut(c.Image, "/"); !strings.Contains(host, ".") || strings.Count(rest, ":") != 1 {
		t.Errorf("image %q: want a canonical name, with host and tag", c.Image)
	}
	command := "serve"
	if d.Name == infrastructureName {
		command = "infrastructure"
	}
	if len(c.Command) != 0 || len(c.Args) == 0 || c.Args[0] != command {
		t.Errorf("the container runs %v %v: want %s of the image's entrypoint", c.Command, c.Args, command)
	}
	return c
}

// TestAvailability checks that neither an update, nor a drain, nor the loss of a node stops the service.
func TestAvailability(t *testing.T) {
	each(t, func(t *testing.T, objects []object) {
		d, budget := one[*appsv1.Deployment](t, objects), one[*policyv1.PodDisruptionBudget](t, objects)
		if !is(d.Spec.Replicas, 2) {
			t.Errorf("replicas: %v, want 2", d.Spec.Replicas)
		}
		if u := d.Spec.Strategy.RollingUpdate; u == nil || !is(u.MaxUnavailable, intstr.FromInt32(0)) {
			t.Errorf("an update may take replicas away: %+v", d.Spec.Strategy)
		}
		if !is(budget.Spec.MaxUnavailable, intstr.FromInt32(1)) ||
			!is(budget.Spec.UnhealthyPodEvictionPolicy, policyv1.AlwaysAllow) {
			t.Errorf("disruption budget %+v: want one at a time, and those that are not ready always", budget.Spec)
		}
		var keys []string
		for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
			keys = append(keys, c.TopologyKey)
			matches(t, "spread over "+c.TopologyKey, c.LabelSelector, d)
			if c.MaxSkew != 1 || c.WhenUnsatisfiable != corev1.ScheduleAnyway {
				t.Errorf("spread over %s: skew %d, %s: want 1, and one node to do", c.TopologyKey, c.MaxSkew,
					c.WhenUnsatisfiable)
			}
		}
		if diff := cmp.Diff([]string{corev1.LabelHostname, corev1.LabelTopologyZone}, keys); diff != "" {
			t.Errorf("replicas are spread over other things (-want +got):\n%s", diff)
		}
		matches(t, "disruption budget", budget.Spec.Selector, d)
		matches(t, "Deployment", d.Spec.Selector, d)
		matches(t, "network policy", &one[*networkingv1.NetworkPolicy](t, objects).Spec.PodSelector, d)
		matches(t, "Service", &metav1.LabelSelector{MatchLabels: one[*corev1.Service](t, objects).Spec.Selector}, d)

		const defaultShutdownTimeout = 40 * time.Second
		delay, err := time.ParseDuration(flags(container(t, d))["--shutdown-delay"])
		if err != nil || delay <= 0 {
			t.Errorf("--shutdown-delay %s, %v: load balancers get no time to notice", delay, err)
		}
		grace := d.Spec.Template.Spec.TerminationGracePeriodSeconds
		if least := delay + defaultShutdownTimeout; grace == nil || time.Duration(*grace)*time.Second <= least {
			t.Errorf("the Pod may be killed before it has drained, which takes up to %s", least)
		}
	})
}

// TestAutoscaling checks that the autoscaler alone decides how many replicas the Deployment has, by their CPU time.
func TestAutoscaling(t *testing.T) {
	objects := withComponent(t, "autoscaling")
	d, scaler := one[*appsv1.Deployment](t, objects), one[*autoscalingv2.HorizontalPodAutoscaler](t, objects)
	if d.Spec.Replicas != nil {
		t.Errorf("the Deployment has %d replicas: applying it again would undo what the autoscaler did", *d.Spec.Replicas)
	}
	want := autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name}
	if scaler.Spec.ScaleTargetRef != want || scaler.Namespace != d.Namespace {
		t.Errorf("it scales %+v in %q, want %+v in %q", scaler.Spec.ScaleTargetRef, scaler.Namespace, want, d.Namespace)
	}
	if !is(scaler.Spec.MinReplicas, 2) || scaler.Spec.MaxReplicas <= 2 {
		t.Errorf("from %v to %d replicas, want from the 2 of the Deployment to more", scaler.Spec.MinReplicas, scaler.Spec.MaxReplicas)
	}
	for _, m := range scaler.Spec.Metrics {
		if m.Resource == nil || m.Resource.Name != corev1.ResourceCPU {
			t.Errorf("it scales by %+v: memory is bounded, so that it does not tell how busy a replica is", m)
		}
	}
}

// matches checks that a selector selects the Deployment's Pods, and is not empty.
func matches(t *testing.T, what string, selector *metav1.LabelSelector, d *appsv1.Deployment) {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || s.Empty() || !s.Matches(labels.Set(d.Spec.Template.Labels)) {
		t.Errorf("%s: selector %q, %v: want it to select Pods with %v", what, s, err, d.Spec.Template.Labels)
	}
}

// flags returns the flags of the container by name.
func flags(c corev1.Container) map[string]string {
	found := map[string]string{}
	for _, a := range c.Args[1:] {
		name, value, _ := strings.Cut(a, "=")
		found[name] = value
	}
	return found
}

// TestPorts follows each port from the flag to its users.
func TestPorts(t *testing.T) {
	each(t, func(t *testing.T, objects []object) {
		c := container(t, one[*appsv1.Deployment](t, objects))
		given := flags(c)
		want := map[string]string{"https": given["--http-address"], "grpc": given["--grpc-address"],
			"health": given["--health-addr"]}
		if a, ok := given["--diagnostics-address"]; ok {
			want["metrics"] = a
		}
		got := expectPorts(t, &c, want)
		served := map[string]int32{}
		for _, p := range one[*corev1.Service](t, objects).Spec.Ports {
			served[p.TargetPort.StrVal] = p.Port
		}
		if diff := cmp.Diff(map[string]int32{"https": 443, "grpc": 9090}, served); diff != "" {
			t.Errorf("the Service has other ports (-want +got):\n%s", diff)
		}
		delete(got, "health") // the kubelet is always let in
		open := map[string]bool{}
		for _, rule := range one[*networkingv1.NetworkPolicy](t, objects).Spec.Ingress {
			if len(rule.From) == 0 || len(rule.Ports) == 0 {
				t.Errorf("network policy: %+v lets everyone in, or in everywhere", rule)
			}
			for _, p := range rule.Ports {
				open[p.Port.StrVal] = true
			}
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(open))); diff != "" {
			t.Errorf("the network policy lets in to other ports (-container +policy):\n%s", diff)
		}
	})
}

// TestEgress checks that no rule for addresses includes the metadata addresses of clouds, which hand out credentials.
func TestEgress(t *testing.T) {
	policy := one[*networkingv1.NetworkPolicy](t, install(t, false))
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}, policy.Spec.PolicyTypes); diff != "" {
		t.Errorf("policy types (-want +got):\n%s", diff)
	}
	except := map[string][]string{"0.0.0.0/0": {"169.254.0.0/16"}, "::/0": {"fd00:ec2::254/128", "fe80::/10"}}
	for _, rule := range policy.Spec.Egress {
		if len(rule.To) == 0 && slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port == nil || p.Port.IntVal != 53 }) {
			t.Errorf("rule %+v lets out to everywhere, for more than names", rule)
		}
		for _, to := range rule.To {
			if to.IPBlock != nil && !slices.Equal(to.IPBlock.Except, except[to.IPBlock.CIDR]) {
				t.Errorf("%s except %v: want all but %v", to.IPBlock.CIDR, to.IPBlock.Except, except[to.IPBlock.CIDR])
			}
		}
	}
}

// TestCertificates follows the certificate from its issuer to the directory that the gateway reads.
func TestCertificates(t *testing.T) {
	each(t, func(t *testing.T, objects []object) {
		d, service := one[*appsv1.Deployment](t, objects), one[*corev1.Service](t, objects)
		issuers, secrets := map[string]*issuer{}, map[string]*certificate{}
		for _, i := range all[*issuer](objects) {
			issuers[i.Name] = i
		}
		for _, c := range all[*certificate](objects) {
			secrets[c.Spec.SecretName] = c
			if c.Spec.IssuerRef["kind"] != "Issuer" || issuers[c.Spec.IssuerRef["name"]] == nil {
				t.Errorf("certificate %s: there is no issuer %v", c.Name, c.Spec.IssuerRef)
			}
		}
		var mounted []string
		var serving *certificate
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Projected == nil {
				continue
			}
			if !is(v.Projected.DefaultMode, 0o440) {
				t.Errorf("volume %s: everyone may read the key", v.Name)
			}
			for _, s := range v.Projected.Sources {
				if serving == nil {
					serving = secrets[s.Secret.Name]
				}
				for _, item := range s.Secret.Items {
					mounted = append(mounted, s.Secret.Name+" "+item.Key+"="+item.Path)
				}
			}
		}
		want := []string{"hookgate-serving-cert tls.crt=tls.crt", "hookgate-serving-cert tls.key=tls.key", "hookgate-callers-ca ca.crt=ca.crt"}
		if diff := cmp.Diff(want, mounted); diff != "" {
			t.Errorf("files of --cert-dir (-want +got):\n%s", diff)
		}
		if serving == nil {
			t.Fatal("no certificate writes the secret that is mounted")
		}
		host := service.Name + "." + service.Namespace + ".svc"
		if diff := cmp.Diff([]string{host, host + ".cluster.local"}, serving.Spec.DNSNames); diff != "" {
			t.Errorf("the certificate is for other names than the Service's (-want +got):\n%s", diff)
		}
		ca := issuers[serving.Spec.IssuerRef["name"]].Spec.CA
		if ca == nil || secrets[ca.SecretName] == nil || !secrets[ca.SecretName].Spec.IsCA ||
			secrets[ca.SecretName].Spec.PrivateKey.RotationPolicy != "Never" {
			t.Errorf("the issuer of the serving certificate has no CA that stays: %+v", ca)
		}
	})
}

// TestGuideRegistersTheGateway checks the manifest that makes Cluster API call the gateway.
func TestGuideRegistersTheGateway(t *testing.T) {
	objects := install(t, false)
	service := one[*corev1.Service](t, objects)
	c := one[*runtimev1.ExtensionConfig](t, decode(t, "register.yaml",
		[]byte(guideFiles(t, t.TempDir())["register.yaml"])))
	s := c.Spec.ClientConfig.Service
	if s.Namespace != service.Namespace || s.Name != service.Name || !is(s.Port, service.Spec.Ports[0].Port) {
		t.Errorf("it points at %+v, the Service is %s/%s", s, service.Namespace, service.Name)
	}
	want := map[string]string{runtimev1.InjectCAFromSecretAnnotation: namespace + "/hookgate-serving-cert"}
	if diff := cmp.Diff(want, c.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// expectPorts checks that a container has the ports of the addresses in its flags, by name, that its probes ask the
// health port, and that a frozen process gets no calls, and is ended, 20 s later. It returns the ports.
func expectPorts(t *testing.T, c *corev1.Container, want map[string]string) (got map[string]string) {
	t.Helper()
	got = map[string]string{}
	for _, p := range c.Ports {
		got[p.Name] = fmt.Sprintf(":%d", p.ContainerPort)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ports of the container differ from its flags (-flags +ports):\n%s", diff)
	}
	or := func(value, otherwise int32) int32 {
		if value == 0 {
			return otherwise
		}
		return value
	}
	for _, of := range []struct {
		path  string
		probe *corev1.Probe
	}{{"/readyz", c.StartupProbe}, {"/readyz", c.ReadinessProbe}, {"/healthz", c.LivenessProbe}} {
		probe := of.probe
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != of.path ||
			probe.HTTPGet.Port != intstr.FromString("health") {
			t.Fatalf("probe %+v, want GET %s on the health port", probe, of.path)
		}
		// The first probe may come as late as a period after the process froze.
		seen := or(probe.FailureThreshold, 3)*probe.PeriodSeconds + or(probe.TimeoutSeconds, 1)
		if grace := probe.TerminationGracePeriodSeconds; probe == c.LivenessProbe && grace != nil {
			seen += int32(*grace)
		} else if probe == c.LivenessProbe {
			t.Error("a frozen process has the whole grace period of its Pod")
		}
		if probe != c.StartupProbe && seen > 20 {
			t.Errorf("GET %s: a process that is frozen is noticed after up to %d s, want 20", of.path, seen)
		}
	}
	return got
}

// Whatever an overlay adds to the environment of a gateway, it keeps the limit of its memory.
func TestOverlaysKeepTheMemoryLimit(t *testing.T) {
	overlays, err := filepath.Glob(filepath.Join("..", "..", "deploy", "overlays", "*"))
	if err != nil || len(overlays) < 5 {
		t.Fatalf("overlays %v, %v", overlays, err)
	}
	for _, dir := range append(overlays, filepath.Join("..", "..", "deploy", "infrastructure")) {
		gateways := 0
		for _, o := range decode(t, dir, kustomize(t, dir)) {
			d, ok := o.Object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			pod := d.Spec.Template.Spec
			for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
				if !strings.Contains(c.Image, "hookgate/hookgate:") {
					continue
				}
				gateways++
				want := fmt.Sprintf("%dMiB", c.Resources.Limits.Memory().Value()*9/10>>20)
				i := slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == "GOMEMLIMIT" })
				if i < 0 || c.Env[i].Value != want {
					t.Errorf("%s: container %s: the environment is %v, want GOMEMLIMIT=%s, nine tenths of its limit",
						filepath.Base(dir), c.Name, c.Env, want)
				}
			}
		}
		if gateways == 0 {
			t.Errorf("%s has no gateway", filepath.Base(dir))
		}
	}
}

// TestReleaseKustomization renders the guide's kustomization for a release from this checkout.
func TestReleaseKustomization(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "kustomization.yaml"), []byte(guideFiles(t, dir)[guideForRelease]))
	objects := decode(t, "release", kustomize(t, dir))
	if image := container(t, one[*appsv1.Deployment](t, objects)).Image; image != "ghcr.io/hookgate/hookgate:v0.1.0" {
		t.Errorf("the image is %q", image)
	}
}
