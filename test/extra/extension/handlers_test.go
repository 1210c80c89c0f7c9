// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
)

func TestEveryHookIsServed(t *testing.T) {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{Catalog: catalog, CertDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	names, hooks := map[string]bool{}, map[string]bool{}
	for _, h := range handlers("x") {
		if names[h.Name] {
			t.Errorf("handler %q is there twice", h.Name)
		}
		names[h.Name] = true
		hooks[runtimecatalog.HookName(h.Hook)] = true
		if err := s.AddExtensionHandler(h); err != nil {
			t.Errorf("handler %q: %v", h.Name, err)
		}
	}
	if len(hooks) != 16 {
		t.Errorf("%d hooks are served, want 16: %v", len(hooks), hooks)
	}
}

func TestInstructions(t *testing.T) {
	cluster := &clusterv1.Cluster{}
	cluster.Annotations = map[string]string{"extension.hookgate.dev/h": "retryAfterSeconds=15"}
	for name, tc := range map[string]struct {
		reason   string
		settings map[string]string
		want     runtimehooksv1.CommonRetryResponse
	}{
		"annotation":    {"the Cluster says it", nil, retry("Success", "", 15)},
		"settings win":  {"a setting of the handler's name", map[string]string{"h": "status=Failure,message=no"}, retry("Failure", "no", 0)},
		"other handler": {"settings of others do not count", map[string]string{"g": "status=Failure"}, retry("Success", "", 15)},
		"unknown":       {"a typing error in a test must not go unseen", map[string]string{"h": "sleep=1s"}, retry("Failure", `instruction "sleep=1s": not known`, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			response := &runtimehooksv1.BeforeClusterCreateResponse{}
			response.Status = runtimehooksv1.ResponseStatusSuccess
			follow(t.Context(), instructions("h", tc.settings, cluster), response)
			if response.CommonRetryResponse != tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, response.CommonRetryResponse, tc.want)
			}
		})
	}
}

func retry(status runtimehooksv1.ResponseStatus, message string, seconds int32) runtimehooksv1.CommonRetryResponse {
	return runtimehooksv1.CommonRetryResponse{
		CommonResponse:    runtimehooksv1.CommonResponse{Status: status, Message: message},
		RetryAfterSeconds: seconds,
	}
}

func TestUpgradePlan(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, from, to string
		controlPlane     []string
	}{
		"three minors":  {"every minor is a step", "v1.30.9", "v1.33.4", []string{"v1.31.0", "v1.32.0", "v1.33.4"}},
		"patch":         {"no minor in between", "v1.33.1", "v1.33.4", []string{"v1.33.4"}},
		"down":          {"refused", "v1.33.1", "v1.32.4", nil},
		"not a version": {"refused", "latest", "v1.32.4", nil},
	} {
		t.Run(name, func(t *testing.T) {
			response := &runtimehooksv1.GenerateUpgradePlanResponse{}
			generateUpgradePlan(&runtimehooksv1.GenerateUpgradePlanRequest{FromControlPlaneKubernetesVersion: tc.from,
				ToKubernetesVersion: tc.to}, response)
			var got []string
			for _, step := range response.ControlPlaneUpgrades {
				got = append(got, step.Version)
			}
			if len(got) != len(tc.controlPlane) ||
				(got == nil) != (response.Status == runtimehooksv1.ResponseStatusFailure) {
				t.Fatalf("%s: got %v, status %q, want %v", tc.reason, got, response.Status, tc.controlPlane)
			}
			for i := range got {
				if got[i] != tc.controlPlane[i] {
					t.Errorf("%s: got %v, want %v", tc.reason, got, tc.controlPlane)
				}
			}
		})
	}
}
