// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/process"
)

// newChain returns a chain of the test.
func newChain(t testing.TB, name, hook string, steps ...string) *v1alpha1.HandlerChain {
	t.Helper()
	c := &v1alpha1.HandlerChain{}
	c.Name = name
	c.Labels = map[string]string{clusterv1.WatchLabel: filterOf(t)}
	c.Spec.Hook = hook
	for _, step := range steps {
		c.Spec.Steps = append(c.Spec.Steps, v1alpha1.HandlerChainStep{Handler: step})
	}
	return c
}

// awaitReady waits until the condition Ready of a chain is that one, for its present generation.
func awaitReady(t testing.TB, c client.Client, name, reason, message string) {
	t.Helper()
	eventually(t, name+" is "+reason+": "+message, func() (string, bool) {
		chain := &v1alpha1.HandlerChain{}
		if err := c.Get(context.Background(), client.ObjectKey{Name: name}, chain); err != nil {
			t.Fatal(err)
		}
		found := meta.FindStatusCondition(chain.Status.Conditions, v1alpha1.ReadyCondition)
		if found == nil {
			return "no such condition", false
		}
		return found.Reason + ": " + found.Message, found.Reason == reason && found.Message == message &&
			found.ObservedGeneration == chain.Generation
	})
}

// The condition of a chain turns when handlers come and go, and the API server takes what the gateway writes.
func TestChainTurnsWithItsHandlers(t *testing.T) {
	_, c := connect(t)
	r := start(t, func(s *controllers.Config) { s.Resync = 100 * time.Millisecond })
	r.ready(t)
	create(t, c, newChain(t, "turns", "BeforeClusterCreate", "a.turns-x", "b.turns-x"))
	awaitReady(t, c, "turns", "StepMissing", `Calls fail: step 1: no handler "a.turns-x" is registered; step 2: no handler "b.turns-x" is registered`)
	x := newExtension(t, "a")
	create(t, c, newConfig(t, "turns-x", x))
	awaitReady(t, c, "turns", "StepMissing", `Calls fail: step 2: no handler "b.turns-x" is registered`)
	x.set(func(s *serverOf) { s.handlers = append(s.handlers, handler("b", "BeforeClusterCreate")) })
	awaitReady(t, c, "turns", "Ready", "Calls go to 2 handlers")
}

// A cluster without HandlerChains and Clusters has a gateway that is ready. Once they are installed, chains are followed
// and Clusters known; an update that a chain blocks has an event, and repetitions are counted in it.
func TestInPlaceChains(t *testing.T) {
	if apiServer == nil {
		t.Skipf("%s is not set", assetsVariable)
	}
	crds := filepath.Join("..", "..", "deploy", "crd")
	config, c := emptyServer(t, filepath.Join(crds, "runtime.cluster.x-k8s.io_extensionconfigs.yaml"),
		filepath.Join(crds, "hookgate.dev_extensionpolicies.yaml"))
	install := func(o envtest.CRDInstallOptions) {
		t.Helper()
		o.MaxTime = process.ServerPatience
		if _, err := envtest.InstallCRDs(config, o); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, func(s *controllers.Config) { s.REST = config })
	r.ready(t)
	says := func(text string) {
		t.Helper()
		eventually(t, "the log says "+text, func() (string, bool) { return r.log.String(), strings.Contains(r.log.String(), text) })
	}
	says("install the CustomResourceDefinition of HandlerChain in hookgate.dev, if you want chains")
	install(envtest.CRDInstallOptions{Paths: []string{filepath.Join(crds, "hookgate.dev_handlerchains.yaml")}})
	create(t, c, newChain(t, "in-place", "CanUpdateMachine", "a.none"))
	awaitReady(t, c, "in-place", "StepMissing", `Calls fail: step 1: no handler "a.none" is registered`)
	says("allow the gateway's service account to list and watch clusters of cluster.x-k8s.io, and install Cluster API")

	install(envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{
		anykind.Of("cluster.x-k8s.io", "v1beta2", "Cluster"), anykind.Of("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane"),
	}})
	of := func(group, kind string) *unstructured.Unstructured {
		return object(t, "apiVersion: "+group+"/v1beta2\nkind: "+kind+"\nmetadata: {namespace: default, name: a, labels: {disks: local}}\n")
	}
	create(t, c, of("cluster.x-k8s.io", "Cluster"))
	eventually(t, "the labels of the Cluster are known", func() (string, bool) {
		labels, known := r.ClusterLabels("default", "a")
		return fmt.Sprint(labels, known), known && maps.Equal(labels, map[string]string{"disks": "local"})
	})

	owner := of("controlplane.cluster.x-k8s.io", "KubeadmControlPlane")
	create(t, c, owner)
	about := corev1.ObjectReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Namespace: "default", Name: "a"}
	const note = `onPartialCoverage of HandlerChain "in-place" is Block, and no step covers /machine/spec/version`
	eventually(t, "an event counts two blocked updates", func() (string, bool) {
		r.Blocked(about, "in-place", note)
		var list eventsv1.EventList
		if err := c.List(t.Context(), &list, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		list.Items = slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Kind != about.Kind })
		if len(list.Items) == 0 {
			return "no event", false
		}
		e := list.Items[0]
		if len(list.Items) > 1 || e.Note != note || e.Type != corev1.EventTypeWarning || e.Reason != "InPlaceUpdateBlocked" || e.Regarding.UID != owner.GetUID() {
			t.Fatalf("events are %+v", list.Items)
		}
		return fmt.Sprint(e.Series), e.Series != nil && e.Series.Count >= 2
	})
}

// watchedAs returns the metadata of an object that the gateway of a test watches, also in its parts.
func watchedAs(t testing.TB, name string) string {
	t.Helper()
	filter, _, _ := strings.Cut(filterOf(t), ".")
	return "name: " + name + ", labels: {" + clusterv1.WatchLabel + ": " + filter + "}"
}

func chainManifest(t testing.TB, name, spec string) string {
	t.Helper()
	return "apiVersion: hookgate.dev/v1alpha1\nkind: HandlerChain\nmetadata: {" + watchedAs(t, name) + "}\nspec: {" + spec + "}\n"
}

// testChains shows each mistake in a chain as the API server refuses it, by the schema or by the webhook.
func (s *webhookServer) testChains(t *testing.T) {
	create(t, s, object(t, configManifest("v1beta2", watchedAs(t, "taken"), `clientConfig: {url: "https://127.0.0.1:1"}`)))
	const step = "steps: [{handler: a.acme}]"
	for reason, tc := range map[string]struct{ name, spec, want string }{
		"a name with a dot":                 {"a.b", "hook: GeneratePatches, " + step, "<nil>: Invalid value: metadata.name must be a DNS-1123 label of at most 63 characters: it is the name of a handler"},
		"no step":                           {"refused", "hook: GeneratePatches, steps: []", "spec.steps: Invalid value: 0: spec.steps in body should have at least 1 items"},
		"a step twice":                      {"refused", "hook: GeneratePatches, steps: [{handler: a.acme}, {handler: a.acme}]", `spec.steps[1]: Duplicate value: {"handler":"a.acme"}`},
		"a chain as a step":                 {"refused", "hook: GeneratePatches, steps: [{handler: other-chain}]", `spec.steps[0].handler: Invalid value: "other-chain": must be the registered name of a handler: <handler>.<ExtensionConfig>`},
		"65 steps":                          {"refused", "hook: GeneratePatches, steps: [" + strings.Repeat("{handler: a.acme}, ", 65) + "]", "spec.steps: Too many: 65: must have at most 64 items"},
		"an optional step in place":         {"refused", "hook: UpdateMachine, steps: [{handler: a.acme, optional: true}]", "spec: Invalid value: a step of an in-place hook cannot be optional: Machines would be updated, or replaced, without it"},
		"allow where nothing is updated":    {"refused", "hook: GeneratePatches, steps: [{handler: a.acme, allow: [/machine]}]", "spec: Invalid value: allow is for steps of the hooks CanUpdateMachine and CanUpdateMachineSet"},
		"Block where nothing is updated":    {"refused", "hook: UpdateMachine, onPartialCoverage: Block, " + step, "spec: Invalid value: onPartialCoverage is for the hooks CanUpdateMachine and CanUpdateMachineSet"},
		"onHold where nothing holds":        {"refused", "hook: GeneratePatches, steps: [{handler: a.acme, onHold: Stop}]", "spec: Invalid value: onHold is for steps of lifecycle hooks that can hold; a chain of UpdateMachine always stops at a step that is not done"},
		"a hook that is none":               {"refused", "hook: GeneratePatch, " + step, `spec.hook: Invalid value: "GeneratePatch": not a hook that can have a chain: did you mean "GeneratePatches"?`},
		"the name of an ExtensionConfig":    {"taken", "hook: GeneratePatches, " + step, `metadata.name: Invalid value: "taken": is the name of ExtensionConfig "taken": choose another name`},
		"the name of the gateway's handler": {"beforeclustercreate", "hook: GeneratePatches, " + step, `metadata.name: Invalid value: "beforeclustercreate": is the name of the gateway's own handler of BeforeClusterCreate: choose another name`},
	} {
		t.Run(reason, func(t *testing.T) {
			eventually(t, "it is refused", func() (string, bool) { // once the gateway knows what is registered
				o := object(t, chainManifest(t, tc.name, tc.spec))
				err := s.Create(t.Context(), o)
				if err == nil {
					return "allowed", s.Delete(t.Context(), o) != nil
				}
				got := refusal(t, err)
				return got, apierrors.IsInvalid(err) && strings.HasPrefix(got, tc.want)
			})
		})
	}
	s.warned()
	create(t, s, object(t, chainManifest(t, "chained", "hook: GeneratePatches, "+step)))
	want := []string{`step 1: no handler "a.acme" is registered; calls of the chain fail meanwhile`}
	if diff := cmp.Diff(want, s.warned()); diff != "" {
		t.Errorf("warnings of a chain (-want +got):\n%s", diff)
	}
	eventually(t, "an ExtensionConfig with the name of a chain is refused", func() (string, bool) {
		o := object(t, configManifest("v1beta2", watchedAs(t, "chained"), `clientConfig: {url: "https://127.0.0.1:1"}`))
		err := s.Create(t.Context(), o)
		if err == nil {
			return "allowed", s.Delete(t.Context(), o) != nil
		}
		got := refusal(t, err)
		return got, got == `metadata.name: Invalid value: "chained": is the name of HandlerChain "chained": choose another name`
	})
}
