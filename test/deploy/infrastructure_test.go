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

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	infrastructureName     = "hookgate-infrastructure"
	infrastructureProvider = "infrastructure-hookgate"
)

// infrastructure renders the infrastructure provider, and the gateway that it is installed beside.
func infrastructure(t *testing.T) (objects, gateway []object) {
	t.Helper()
	return decode(t, "infrastructure", kustomize(t, filepath.Join("..", "..", "deploy", "infrastructure"))), hub(t, "HubBesideCore")
}

// TestInfrastructureObjects checks the labels and the namespace of the infrastructure provider, that its Pods are
// restricted and are spared by drains and updates, and that what selects them does.
func TestInfrastructureObjects(t *testing.T) {
	objects, _ := infrastructure(t)
	checkSecurity(t, objects, true)
	for _, o := range objects {
		if got := o.GetLabels()[providerLabel]; got != infrastructureProvider {
			t.Errorf("%s %s: label %s is %q, want %s", o.kind, o.GetName(), providerLabel, got, infrastructureProvider)
		}
		if n := o.GetNamespace(); n != "" && n != namespace {
			t.Errorf("%s %s is in namespace %q", o.kind, o.GetName(), n)
		}
	}
	d, budget := one[*appsv1.Deployment](t, objects), one[*policyv1.PodDisruptionBudget](t, objects)
	if !is(d.Spec.Replicas, 2) || !is(d.Spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(0)) {
		t.Errorf("replicas %v, %+v: want two, and an update that takes none away", d.Spec.Replicas, d.Spec.Strategy)
	}
	if !is(budget.Spec.MaxUnavailable, intstr.FromInt32(1)) || !is(budget.Spec.UnhealthyPodEvictionPolicy, policyv1.AlwaysAllow) {
		t.Errorf("disruption budget %+v: want one at a time, and those that are not ready always", budget.Spec)
	}
	matches(t, "disruption budget", budget.Spec.Selector, d)
	matches(t, "Deployment", d.Spec.Selector, d)
	matches(t, "network policy", &one[*networkingv1.NetworkPolicy](t, objects).Spec.PodSelector, d)
	matches(t, "Service", &metav1.LabelSelector{MatchLabels: one[*corev1.Service](t, objects).Spec.Selector}, d)
	for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
		matches(t, "spread over "+c.TopologyKey, c.LabelSelector, d)
	}
	if _, ok := flags(container(t, d))["--leader-elect"]; !ok {
		t.Error("two replicas work at the same time: no --leader-elect")
	}
}

// TestInfrastructurePorts follows each port from the flag to its users, and the webhooks from their registration to the
// certificate. test/provider runs the program with these flags.
func TestInfrastructurePorts(t *testing.T) {
	objects, _ := infrastructure(t)
	c := container(t, one[*appsv1.Deployment](t, objects))
	given := flags(c)
	want := map[string]string{
		"health": given["--health-addr"], "metrics": given["--diagnostics-address"], "webhook": ":" + given["--webhook-port"],
	}
	got := expectPorts(t, &c, want)
	open := map[string]bool{}
	for _, rule := range one[*networkingv1.NetworkPolicy](t, objects).Spec.Ingress {
		for _, p := range rule.Ports {
			open[p.Port.StrVal] = true
			if p.Port.StrVal != "webhook" && len(rule.From) == 0 {
				t.Errorf("network policy: port %s is open to all", p.Port)
			}
		}
	}
	delete(got, "health") // the kubelet is always let in
	if diff := cmp.Diff(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(open))); diff != "" {
		t.Errorf("the network policy lets in to other ports (-container +policy):\n%s", diff)
	}

	service := one[*corev1.Service](t, objects)
	if p := service.Spec.Ports; len(p) != 1 || p[0].TargetPort != intstr.FromString("webhook") {
		t.Fatalf("the Service has the ports %v, want that of the webhooks", p)
	}
	for _, w := range one[*admissionregistrationv1.ValidatingWebhookConfiguration](t, objects).Webhooks {
		if s := w.ClientConfig.Service; s.Name != service.Name || s.Namespace != service.Namespace || !is(s.Port, service.Spec.Ports[0].Port) {
			t.Errorf("webhook %s is at %v, and the Service is %s/%s", w.Name, s, service.Namespace, service.Name)
		}
	}
	var names []string
	for _, o := range all[*certificate](objects) {
		names = append(names, o.Spec.DNSNames...)
	}
	host := service.Name + "." + service.Namespace + ".svc"
	if diff := cmp.Diff([]string{host, host + ".cluster.local"}, names); diff != "" {
		t.Errorf("the certificates are for other names than the Service's (-want +got):\n%s", diff)
	}
}

// TestInfrastructureFiles follows each file from the flag to the volume, and to the certificate that is written there.
func TestInfrastructureFiles(t *testing.T) {
	objects, gateway := infrastructure(t)
	issuers, secrets := map[string]bool{}, map[string]bool{}
	for _, i := range all[*issuer](gateway) {
		issuers[i.Name] = true
	}
	for _, c := range append(all[*certificate](gateway), all[*certificate](objects)...) {
		secrets[c.Spec.SecretName] = true
		if c.Spec.IssuerRef["kind"] != "Issuer" || !issuers[c.Spec.IssuerRef["name"]] {
			t.Errorf("certificate %s: neither the gateway nor the provider has the issuer %v", c.Name, c.Spec.IssuerRef)
		}
	}
	d := one[*appsv1.Deployment](t, objects)
	files := map[string]bool{}
	for _, m := range container(t, d).VolumeMounts {
		i := slices.IndexFunc(d.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 || d.Spec.Template.Spec.Volumes[i].Secret == nil {
			t.Fatalf("%s: there is no volume %s of a Secret", m.MountPath, m.Name)
		}
		source := d.Spec.Template.Spec.Volumes[i].Secret
		if !secrets[source.SecretName] || !is(source.DefaultMode, 0o440) {
			t.Errorf("volume %s: no certificate writes the Secret %s, or all may read it", m.Name, source.SecretName)
		}
		if len(source.Items) == 0 {
			for _, key := range []string{"ca.crt", "tls.crt", "tls.key"} { // as cert-manager writes
				files[m.MountPath+"/"+key] = true
			}
		}
		for _, item := range source.Items {
			files[m.MountPath+"/"+item.Path] = item.Key == item.Path
		}
	}
	given := flags(container(t, d))
	for flag, path := range map[string]string{
		"--ca": given["--ca"], "--cert": given["--cert"], "--key": given["--key"],
		"--webhook-cert-dir": given["--webhook-cert-dir"] + "/tls.crt",
	} {
		if !files[path] {
			t.Errorf("%s: no volume has the file %s", flag, path)
		}
	}
}

// TestInfrastructureReachesTheGateway follows the calls from the flag to the gateway: its Service, and the network
// policies of both sides.
func TestInfrastructureReachesTheGateway(t *testing.T) {
	objects, gateway := infrastructure(t)
	service, pod := one[*corev1.Service](t, slices.DeleteFunc(slices.Clone(gateway), func(o object) bool {
		s, ok := o.Object.(*corev1.Service)
		return ok && s.Name != "hookgate"
	})), one[*appsv1.Deployment](t, gateway).Spec.Template
	port := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.TargetPort.StrVal == "grpc" })
	if port < 0 {
		t.Fatalf("the Service of the gateway has the ports %v, and none for gRPC", service.Spec.Ports)
	}
	want := fmt.Sprintf("grpcs://%s.$(POD_NAMESPACE).svc:%d", service.Name, service.Spec.Ports[port].Port)
	if got := flags(container(t, one[*appsv1.Deployment](t, objects)))["--gateway"]; got != want {
		t.Errorf("--gateway=%s, want %s", got, want)
	}
	var out bool
	for _, rule := range one[*networkingv1.NetworkPolicy](t, objects).Spec.Egress {
		for _, to := range rule.To {
			s, err := metav1.LabelSelectorAsSelector(to.PodSelector)
			if err != nil {
				t.Fatal(err)
			}
			out = out || to.NamespaceSelector == nil && s.Matches(labels.Set(pod.Labels)) &&
				slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.StrVal == "grpc" })
		}
	}
	if !out {
		t.Error("the network policy of the provider lets no call out to the gateway")
	}
	var in bool
	own := labels.Set(one[*corev1.Namespace](t, objects).Labels)
	for _, rule := range one[*networkingv1.NetworkPolicy](t, gateway).Spec.Ingress {
		for _, from := range rule.From {
			s, err := metav1.LabelSelectorAsSelector(from.NamespaceSelector)
			if err != nil {
				t.Fatal(err)
			}
			in = in || s.Matches(own) &&
				slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.StrVal == "grpc" })
		}
	}
	if !in {
		t.Error("the network policy of the gateway lets no call of the provider in")
	}
	if e := container(t, one[*appsv1.Deployment](t, objects)).Env; !slices.ContainsFunc(e, func(v corev1.EnvVar) bool {
		return v.Name == "GOMEMLIMIT" && strings.HasSuffix(v.Value, "MiB")
	}) {
		t.Errorf("the environment is %v, and has no GOMEMLIMIT", e)
	}
}
