// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// skewVariable names the environment variable with the folder of the programs built with Cluster API v1.12.
const skewVariable = "HOOKGATE_SKEW_BIN"

// skewProgram returns the path of the named program built with Cluster API v1.12.
func skewProgram(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(process.Program(t, skewVariable), name)
}

// echoed is the setting of a handler of the extension program that makes it answer with what it decoded.
const echoed = "echo"

// crdsFile holds the CustomResourceDefinitions of the kinds that the samples refer to.
const crdsFile = "testdata/crds.yaml"

// startOldExtension runs the extension built with v1.12.
func startOldExtension(t testing.TB, a *authority) *extensionProgram {
	t.Helper()
	cmd := exec.Command(skewProgram(t, "extension"), "--cert-dir", a.dir(t))
	e := &extensionProgram{Process: process.Run(t, "extension of v1.12", cmd)}
	e.url = "https://" + e.Expect(t, `extension serving https=(127\.0\.0\.1:\d+)\n`)[1]
	return e
}

// oldHandler returns the handler of the v1.12 extension for a hook.
func oldHandler(hook string) string {
	if hook == "CanUpdateMachineSet" {
		return "can-update-machineset"
	}
	var b strings.Builder
	for i, r := range hook {
		if i > 0 && r < 'a' {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// asOldCore returns the request that core v1.12 sends where core v1.14 sends body.
func asOldCore(t testing.TB, hook string, body []byte, flags ...string) []byte {
	t.Helper()
	command := exec.Command(skewProgram(t, "core"), append([]string{"--hook", hook, "--crds", crdsFile}, flags...)...)
	var stderr bytes.Buffer
	command.Stdin, command.Stderr = bytes.NewReader(body), &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("core of v1.12, %s: %v\n%s", hook, err, stderr.String())
	}
	return out
}

// understands returns the manifest of a policy that states which objects the handlers of an ExtensionConfig, or one of
// them, understand.
func understands(config, handler, version string) string {
	name, target := strings.Trim(config+"-"+handler, "-"), "{name: "+config+"}"
	if handler != "" {
		target = "{name: " + config + ", handler: " + handler + "}"
	}
	return fmt.Sprintf("apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata:\n  name: %s\nspec:\n  targetRef: %s\n  clusterAPIVersion: %s\n", name, target, version)
}

// crdManifests returns the files of the CustomResourceDefinitions for a gateway's directory.
func crdManifests(t testing.TB) map[string]string {
	t.Helper()
	data, err := os.ReadFile(crdsFile)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"crds.yaml": string(data)}
}

// fullCluster returns the samples' Cluster with every other field that v1.12 has for a Cluster with a topology.
func fullCluster() clusterv1.Cluster {
	c := samples.Cluster()
	c.Spec.Paused = new(true)
	c.Annotations["kubectl.kubernetes.io/description"] = "kept"
	t := &c.Spec.Topology
	t.ControlPlane.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "EtcdBackedUp"},
		{ConditionType: "Draining", Polarity: clusterv1.NegativePolarityCondition}}
	t.ControlPlane.HealthCheck.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{
		APIVersion: "infrastructure.cluster.x-k8s.io/v1beta2", Kind: "AWSRemediationTemplate", Name: "reboot",
	}
	general, gpu := &t.Workers.MachineDeployments[0], &t.Workers.MachineDeployments[1]
	general.HealthCheck = clusterv1.MachineDeploymentTopologyHealthCheck{
		Enabled: new(true),
		Checks: clusterv1.MachineDeploymentTopologyHealthCheckChecks{
			NodeStartupTimeoutSeconds: ptr.To[int32](0),
			UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{{Type: "Ready", Status: "Unknown",
				TimeoutSeconds: ptr.To[int32](90)}},
		},
		Remediation: clusterv1.MachineDeploymentTopologyHealthCheckRemediation{
			MaxInFlight: new(intstr.FromString("20%")),
			TriggerIf:   clusterv1.MachineDeploymentTopologyHealthCheckRemediationTriggerIf{UnhealthyInRange: "[1-4]"},
			TemplateRef: clusterv1.MachineHealthCheckRemediationTemplateReference{
				APIVersion: "infrastructure.cluster.x-k8s.io/v1beta2", Kind: "AWSRemediationTemplate", Name: "replace",
			},
		},
	}
	general.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Warm"}}
	general.Deletion.NodeVolumeDetachTimeoutSeconds, general.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](3600),
		ptr.To[int32](45)
	gpu.HealthCheck.Enabled = new(false)
	gpu.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	pool := &t.Workers.MachinePools[0]
	pool.Metadata = clusterv1.ObjectMeta{Labels: map[string]string{"pool": "spot"},
		Annotations: map[string]string{"note": "größer"}}
	pool.MinReadySeconds = ptr.To[int32](20)
	pool.Deletion = clusterv1.MachinePoolTopologyMachineDeletionSpec{
		NodeDrainTimeoutSeconds: ptr.To[int32](60), NodeVolumeDetachTimeoutSeconds: ptr.To[int32](61),
		NodeDeletionTimeoutSeconds: ptr.To[int32](62),
	}
	pool.Variables.Overrides = []clusterv1.ClusterVariable{{Name: "instanceType"}}
	pool.Variables.Overrides[0].Value.Raw = []byte(`"m6i.4xlarge"`)
	// v1.12 does not know these yet.
	t.ControlPlane.Taints, general.Taints = nil, nil
	return c
}

// newerCluster returns fullCluster with fields that v1.12 lacks.
func newerCluster() clusterv1.Cluster {
	c := fullCluster()
	t := &c.Spec.Topology
	taints := []clusterv1.MachineTaint{{Key: "example.com/startup", Value: "pending", Effect: "NoSchedule",
		Propagation: clusterv1.MachineTaintPropagationOnInitialization}}
	conditions := []clusterv1.UnhealthyMachineCondition{{Type: "APIServerPodHealthy", Status: metav1.ConditionFalse,
		TimeoutSeconds: ptr.To[int32](30)}}
	after := metav1.NewTime(time.Date(2026, 6, 1, 9, 0, 0, 0, time.UTC))
	t.ControlPlane.Taints, t.ControlPlane.Rollout.After = taints, after
	t.ControlPlane.HealthCheck.Checks.UnhealthyMachineConditions = conditions
	general := &t.Workers.MachineDeployments[0]
	general.Taints, general.Rollout.After, general.HealthCheck.Checks.UnhealthyMachineConditions = taints, after,
		conditions
	t.Workers.MachinePools[0].Taints = taints
	return c
}

// requestWith returns the sample of a hook with another Cluster, if the hook has one.
func requestWith(hook string, cluster clusterv1.Cluster) runtimehooksv1.RequestObject {
	request := samples.Request(hook)
	if field := reflect.ValueOf(request).Elem().FieldByName("Cluster"); field.IsValid() {
		deleted := field.Interface().(clusterv1.Cluster).DeletionTimestamp
		cluster.DeletionTimestamp = deleted
		field.Set(reflect.ValueOf(cluster))
	}
	return request
}

// checkLoggedOnce checks that the log has each text once. It ends the gateway, which writes its log a little later than
// its answers.
func (g *gateway) checkLoggedOnce(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		g.Expect(t, regexp.QuoteMeta(text))
	}
	g.EndWell(t)
	for _, text := range texts {
		if n := strings.Count(g.Output(), text); n != 1 {
			t.Errorf("the log has %s %d times, want once", text, n)
		}
	}
}

// differences returns the sorted paths at which two decoded JSON values differ: paths missing from got, paths with
// another value, with got's text, and paths that only got has.
func differences(want, got any) []string {
	var list []string
	add := func(path, format string, args ...any) { list = append(list, path+": "+fmt.Sprintf(format, args...)) }
	var walk func(path string, want, got any)
	walk = func(path string, want, got any) {
		switch w := want.(type) {
		case map[string]any:
			g, ok := got.(map[string]any)
			if !ok {
				add(path, "is %v, want an object", got)
				return
			}
			for name, value := range w {
				other, ok := g[name]
				if !ok {
					add(path+"."+name, "missing")
					continue
				}
				walk(path+"."+name, value, other)
			}
			for name := range g {
				if _, ok := w[name]; !ok {
					add(path+"."+name, "only there")
				}
			}
		case []any:
			g, ok := got.([]any)
			if !ok || len(g) != len(w) {
				add(path, "is %v, want %d items", got, len(w))
				return
			}
			for i := range w {
				walk(fmt.Sprintf("%s[%d]", path, i), w[i], g[i])
			}
		default:
			if !reflect.DeepEqual(want, got) {
				add(path, "is %v, want %v", got, want)
			}
		}
	}
	walk("", want, got)
	for i, line := range list {
		list[i] = strings.TrimPrefix(line, ".")
	}
	slices.Sort(list)
	return list
}

// generic returns value as decoded JSON without types of this package.
func generic(t testing.TB, value any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return decodeMembers(t, raw)
}
