// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// gatewaySpec is a gateway to start: its binary, and the URLs of extensions by the names of their ExtensionConfigs.
type gatewaySpec struct {
	name       string
	binary     string
	extensions map[string]string
	// chains are the names of extensions of whose handlers there is a chain.
	chains []string
	// rules is the number of HookRules.
	rules int
	// policies says that there are policies for the handlers of the null extension, which conversion is measured with.
	policies bool
	// inFlight is how many calls a policy allows the null extension; 0 leaves it at the gateway's default.
	inFlight int
	// record says that the gateway records its calls.
	record bool
	// profiler is where the gateway serves Go's profiler; empty serves none.
	profiler string
}

// startGateway starts a gateway, and waits until it is ready.
func startGateway(
	ctx context.Context, spec gatewaySpec, dir string, certs certificates,
) (p *process.Process, address string, err error) {
	binary, err := filepath.Abs(spec.binary)
	if err != nil {
		return nil, "", err
	}
	configs := filepath.Join(dir, spec.name)
	if err := os.MkdirAll(configs, 0o700); err != nil {
		return nil, "", err
	}
	for file, manifest := range manifests(spec, certs) {
		text, err := json.MarshalIndent(manifest, "", "  ")
		if err != nil {
			return nil, "", err
		}
		// JSON is YAML, and the base64 of the CA needs no care here.
		if err := os.WriteFile(filepath.Join(configs, file+".yaml"), text, 0o600); err != nil {
			return nil, "", err
		}
	}

	args := append([]string{
		"serve", "--extension-configs", configs, "--cert-dir", certs.serverDir,
		"--max-calls-per-second", "1000000", // one caller makes all calls, which are to be counted, not refused
	}, process.AnyPorts()...)
	if spec.record {
		args = append(args, "--record", filepath.Join(dir, "recording"), "--record-max-bytes", "256Mi")
	}
	if spec.profiler != "" {
		args = append(args, "--profiler-address", spec.profiler)
	}
	g, err := process.StartGateway(ctx, spec.name, exec.Command(binary, args...))
	if err != nil {
		return nil, "", err
	}
	if err := g.AwaitReady(ctx); err != nil {
		g.Stop()
		return nil, "", err
	}
	return g.Process, g.HTTPS, nil
}

// manifests returns the gateway's manifests by the names of their files: the extensions and, if spec wants policies, the
// versions of objects that the handlers of the null extension understand, with the CustomResourceDefinition that has the
// version of the reference in hookS's Cluster.
func manifests(spec gatewaySpec, certs certificates) map[string]object {
	policy := func(name string, target, settings object) object {
		settings["targetRef"] = target
		return object{
			"apiVersion": "hookgate.dev/v1alpha1", "kind": "ExtensionPolicy", "metadata": object{"name": name}, "spec": settings,
		}
	}
	files := make(map[string]object)
	for name, url := range spec.extensions {
		files["extension-"+name] = object{
			"apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": object{"name": name},
			"spec": object{"clientConfig": object{"url": url, "caBundle": certs.caPEM}},
		}
	}
	for _, extension := range spec.chains {
		files["chain-"+extension] = chainManifest(extension)
	}
	for i := range spec.rules {
		files[fmt.Sprintf("rule-%d", i)] = ruleManifest(i)
	}
	if spec.policies {
		for handler, version := range map[string]string{handlerSame: "v1beta2", handlerConverted: "v1beta1"} {
			files[handler] = policy(handler, object{"name": extensionName, "handler": handler}, object{"clusterAPIVersion": version})
		}
		files["awscluster"] = object{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": object{
				"name": "awsclusters.infrastructure.cluster.x-k8s.io", "labels": object{"cluster.x-k8s.io/v1beta2": "v1beta2"},
			},
		}
	}
	if spec.inFlight > 0 {
		files["in-flight"] = policy("in-flight", object{"name": extensionName},
			object{"limits": object{"maxInFlight": spec.inFlight}})
	}
	return files
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
