// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// decode reads the first object of a kind in a file of deploy/.
func decode(t *testing.T, kind string, into any, path ...string) {
	t.Helper()
	file := filepath.Join(append([]string{root, "deploy"}, path...)...)
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(read(t, file)))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			t.Fatalf("%s has no %s", file, kind)
		}
		var meta metav1.TypeMeta
		if err := errors.Join(err, yaml.Unmarshal(document, &meta)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if meta.Kind == kind {
			if err := yaml.Unmarshal(document, into); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			return
		}
	}
}

// serviceMonitor has the fields that have to agree with other manifests. The suite of tools/monitoring checks them against the
// types of the Prometheus Operator.
type serviceMonitor struct {
	Spec struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port          string `json:"port"`
			Authorization struct {
				Credentials corev1.SecretKeySelector `json:"credentials"`
			} `json:"authorization"`
			TLSConfig struct {
				ServerName string `json:"serverName"`
				CA         struct {
					Secret corev1.SecretKeySelector `json:"secret"`
				} `json:"ca"`
			} `json:"tlsConfig"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// TestServiceMonitor follows the way from the ServiceMonitor to the Pods of the hub, and to the certificate and the token
// that they talk with.
func TestServiceMonitor(t *testing.T) {
	var monitor serviceMonitor
	decode(t, "ServiceMonitor", &monitor, "monitoring", "servicemonitor.yaml")
	var service corev1.Service
	decode(t, "Service", &service, "monitoring", "service.yaml")
	selector, err := metav1.LabelSelectorAsMap(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range selector {
		if service.Labels[key] != value {
			t.Errorf("the ServiceMonitor selects %s=%s, and the Service has %q", key, value, service.Labels[key])
		}
	}
	var calls corev1.Service
	decode(t, "Service", &calls, "base", "service.yaml")
	if matches(selector, calls.Labels) {
		t.Error("the ServiceMonitor also selects the Service for calls")
	}
	var deployment appsv1.Deployment
	decode(t, "Deployment", &deployment, "base", "deployment.yaml")
	if !matches(service.Spec.Selector, deployment.Spec.Template.Labels) {
		t.Errorf("the Service selects %v, and Pods have %v", service.Spec.Selector, deployment.Spec.Template.Labels)
	}
	if len(monitor.Spec.Endpoints) != 1 || len(service.Spec.Ports) != 1 {
		t.Fatalf("%d endpoints, %d ports, want one each", len(monitor.Spec.Endpoints), len(service.Spec.Ports))
	}
	endpoint, port := monitor.Spec.Endpoints[0], service.Spec.Ports[0]
	if endpoint.Port != port.Name || port.TargetPort.String() != "metrics" {
		t.Errorf("the endpoint is the port %s, the Service has %s, which leads to %s", endpoint.Port, port.Name, &port.TargetPort)
	}
	var certificates struct {
		Spec struct {
			SecretName string   `json:"secretName"`
			DNSNames   []string `json:"dnsNames"`
		} `json:"spec"`
	}
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(read(t, filepath.Join(root, "deploy", "base", "certificate.yaml"))))); ; {
		document, err := reader.Read()
		if err != nil {
			t.Fatalf("no certificate is for %s: %v", endpoint.TLSConfig.ServerName, err)
		}
		certificates.Spec.DNSNames = nil
		if err := yaml.Unmarshal(document, &certificates); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(certificates.Spec.DNSNames, endpoint.TLSConfig.ServerName) {
			break
		}
	}
	if got := endpoint.TLSConfig.CA.Secret.Name; got != certificates.Spec.SecretName {
		t.Errorf("the CA is in %s, and the certificate in %s", got, certificates.Spec.SecretName)
	}
	var token corev1.Secret
	decode(t, "Secret", &token, "monitoring", "serviceaccount.yaml")
	var account corev1.ServiceAccount
	decode(t, "ServiceAccount", &account, "monitoring", "serviceaccount.yaml")
	if got := endpoint.Authorization.Credentials; got.Name != token.Name || got.Key != corev1.ServiceAccountTokenKey ||
		token.Type != corev1.SecretTypeServiceAccountToken || token.Annotations[corev1.ServiceAccountNameKey] != account.Name {
		t.Errorf("the token %+v is not the one of the service account %s", got, account.Name)
	}
}

// TestInfrastructureServiceMonitor follows the way from the ServiceMonitor to the Pods of the infrastructure provider.
func TestInfrastructureServiceMonitor(t *testing.T) {
	var monitor, hub serviceMonitor
	decode(t, "ServiceMonitor", &monitor, "monitoring", "infrastructure-servicemonitor.yaml")
	decode(t, "ServiceMonitor", &hub, "monitoring", "servicemonitor.yaml")
	var service corev1.Service
	decode(t, "Service", &service, "monitoring", "infrastructure-service.yaml")
	var deployment appsv1.Deployment
	decode(t, "Deployment", &deployment, "infrastructure", "deployment.yaml")
	if !matches(monitor.Spec.Selector.MatchLabels, service.Labels) || matches(hub.Spec.Selector.MatchLabels, service.Labels) {
		t.Errorf("the Service has %v, which one of the ServiceMonitors must select", service.Labels)
	}
	if !matches(service.Spec.Selector, deployment.Spec.Template.Labels) {
		t.Errorf("the Service selects %v, and Pods have %v", service.Spec.Selector, deployment.Spec.Template.Labels)
	}
	endpoint, port := monitor.Spec.Endpoints[0], service.Spec.Ports[0]
	if endpoint.Port != port.Name || !slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Ports,
		func(p corev1.ContainerPort) bool { return p.Name == port.TargetPort.String() }) {
		t.Errorf("the endpoint is the port %s, the Service has %s, which leads to %s", endpoint.Port, port.Name, &port.TargetPort)
	}
	if endpoint.Authorization != hub.Spec.Endpoints[0].Authorization {
		t.Errorf("the token is %+v, and that of the hub %+v", endpoint.Authorization, hub.Spec.Endpoints[0].Authorization)
	}
}

func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}
