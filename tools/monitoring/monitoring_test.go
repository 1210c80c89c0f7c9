// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

var deployed = filepath.Join("..", "..", "deploy", "monitoring")

func TestDashboardIsUpToDate(t *testing.T) {
	var want bytes.Buffer
	if err := write(&want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(deployed, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("deploy/monitoring/dashboard.json is not up to date: run 'make generate' and commit")
	}
}

// TestKindsOfTheOperator reads the manifests strictly, by the types of the Prometheus Operator.
func TestKindsOfTheOperator(t *testing.T) {
	for name, into := range map[string]any{
		"servicemonitor.yaml": &monitoringv1.ServiceMonitor{}, "infrastructure-servicemonitor.yaml": &monitoringv1.ServiceMonitor{},
		"prometheusrule.yaml": &monitoringv1.PrometheusRule{},
	} {
		text, err := os.ReadFile(filepath.Join(deployed, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
