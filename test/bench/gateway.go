// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// startGateway starts a gateway with one ExtensionConfig, the null extension at upstream, and waits until it is ready.
func startGateway(
	ctx context.Context, name, binary, dir, upstream string, certs certificates, inFlight int,
) (p *process.Process, address string, err error) {
	configs := filepath.Join(dir, name)
	if err := os.MkdirAll(configs, 0o700); err != nil {
		return nil, "", err
	}
	for file, object := range manifests(upstream, certs, inFlight) {
		manifest, err := json.MarshalIndent(object, "", "  ")
		if err != nil {
			return nil, "", err
		}
		// JSON is YAML, and the base64 of the CA needs no care here.
		if err := os.WriteFile(filepath.Join(configs, file), manifest, 0o600); err != nil {
			return nil, "", err
		}
	}

	args := append([]string{"serve", "--extension-configs", configs, "--cert-dir", certs.serverDir},
		process.AnyPorts()...)
	g, err := process.StartGateway(ctx, name, exec.Command(binary, args...))
	if err != nil {
		return nil, "", err
	}
	if err := g.AwaitReady(ctx); err != nil {
		g.Stop()
		return nil, "", err
	}
	return g.Process, g.HTTPS, nil
}

// manifests returns the gateway's manifests by file: the extension at upstream, the versions of objects that its
// handlers understand, and the CustomResourceDefinition with the version of the reference in hookS's Cluster. If inFlight
// is not 0, as many calls may be in flight.
func manifests(upstream string, certs certificates, inFlight int) map[string]any {
	policy := func(handler, version string) any {
		return map[string]any{
			"apiVersion": "hookgate.dev/v1alpha1", "kind": "ExtensionPolicy", "metadata": map[string]any{"name": handler},
			"spec": map[string]any{"targetRef": map[string]any{"name": extensionName, "handler": handler}, "clusterAPIVersion": version},
		}
	}
	objects := map[string]any{
		"null.yaml": map[string]any{
			"apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": map[string]any{"name": extensionName},
			"spec": map[string]any{
				"clientConfig": map[string]any{"url": "https://" + upstream, "caBundle": certs.caPEM},
			},
		},
		"same.yaml":      policy(handlerSame, "v1beta2"),
		"converted.yaml": policy(handlerConverted, "v1beta1"),
		"awscluster.yaml": map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{
				"name": "awsclusters.infrastructure.cluster.x-k8s.io", "labels": map[string]any{"cluster.x-k8s.io/v1beta2": "v1beta2"},
			},
		},
	}
	if inFlight > 0 {
		objects["in-flight.yaml"] = map[string]any{
			"apiVersion": "hookgate.dev/v1alpha1", "kind": "ExtensionPolicy", "metadata": map[string]any{"name": "in-flight"},
			"spec": map[string]any{
				"targetRef": map[string]any{"name": extensionName}, "limits": map[string]any{"maxInFlight": inFlight},
			},
		}
	}
	return objects
}

// poll calls f every 20 ms until it succeeds, and returns its last error when limit has passed.
func poll(ctx context.Context, limit time.Duration, f func() error) error {
	end := time.Now().Add(limit)
	for {
		err := f()
		if err == nil || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
