// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/shared"
)

// A blocked update is held until the chain answers otherwise, and reported with the object whose Machines it is about.
func TestBlockedUpdates(t *testing.T) {
	machine := func(labels, spec string) *hooksv1alpha1.RawExtension {
		return &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n","labels":{` + labels + `}},"spec":{"clusterName":"c"` + spec + `}}`)}
	}
	ofMachine := func(labels, spec string) proto.Message {
		return &hooksv1alpha1.CanUpdateMachineRequest{
			Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: machine(labels, "")},
			Desired: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: machine(labels, spec)},
		}
	}
	ofSet := func(labels, spec string) proto.Message {
		return &hooksv1alpha1.CanUpdateMachineSetRequest{
			Current: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: machine(labels, "")},
			Desired: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: machine(labels, spec)},
		}
	}
	const (
		controlPlane = `"cluster.x-k8s.io/control-plane-name":"cp"`
		deployment   = `"cluster.x-k8s.io/deployment-name":"md"`
		newVersion   = `,"version":"v2"`
		newTemplate  = `,"template":{"spec":{"version":"v2"}}`
	)
	for reason, tt := range map[string]struct {
		hook             string
		blocked, allowed proto.Message
		owner            string
	}{
		"a Machine of a control plane":   {"CanUpdateMachine", ofMachine(controlPlane, newVersion), ofMachine(controlPlane, ""), "controlplane.cluster.x-k8s.io/v1beta2 KubeadmControlPlane n/cp"},
		"a MachineSet of a deployment":   {"CanUpdateMachineSet", ofSet(deployment, newTemplate), ofSet(deployment, ""), "cluster.x-k8s.io/v1beta2 MachineDeployment n/md"},
		"a Machine without a label":      {"CanUpdateMachine", ofMachine(deployment, newVersion), ofMachine("", ""), ""},
		"a label that is no name at all": {"CanUpdateMachine", ofMachine(`"cluster.x-k8s.io/control-plane-name":"`+strings.Repeat("x", 1<<10)+`"`, newVersion), ofMachine(`"cluster.x-k8s.io/control-plane-name":"`+strings.Repeat("x", 1<<10)+`"`, ""), ""},
	} {
		f := newChain(t, tt.hook)
		f.chain.Block = true
		f.build(t)
		observer, owner := newObserved(f.registry), ""
		f.Dispatcher = NewDispatcher(Config{
			Catalog: allHooks, Versions: allVersions, Registry: f.registry, Namespaces: fixedNamespaces{},
			Blocked: func(o corev1.ObjectReference, chain, message string) {
				owner = o.APIVersion + " " + o.Kind + " " + o.Namespace + "/" + o.Name
				if chain != "chain" || !strings.HasPrefix(message, `onPartialCoverage of HandlerChain "chain" is Block, and no step covers /machine`) {
					t.Errorf("%s: reported is %s: %s", reason, chain, message)
				}
			},
			Parts: shared.Parts{Codec: mandated, Transport: transportOf(callerFunc(func(context.Context, extension.Call) (proto.Message, error) { return nil, nil })), Observer: observer.Observer},
		})
		reporter := observe.Reporter{Catalog: allHooks, Registry: f.registry, Observer: observer.Observer, Namespaces: fixedNamespaces{}}
		if _, failed := f.call(t, tt.blocked); failed != "" {
			t.Fatal(failed)
		}
		holds := reporter.Gateway().Holds
		if len(holds) != 1 || holds[0].Cluster != "c" || holds[0].Handler != "chain" || holds[0].Kind != "Failure" || !strings.Contains(holds[0].Message, "no step covers") {
			t.Errorf("%s: holds are %+v", reason, holds)
		}
		if tt.owner != "" && !strings.HasPrefix(holds[0].Message, strings.Fields(tt.owner)[1]+` "`) {
			t.Errorf("%s: the hold does not say of what: %s", reason, holds[0].Message)
		}
		if owner != tt.owner {
			t.Errorf("%s: reported is %q, want %q", reason, owner, tt.owner)
		}
		if _, failed := f.call(t, tt.allowed); failed != "" || len(reporter.Gateway().Holds) > 0 {
			t.Errorf("%s: after an update that is not blocked: %s, holds are %+v", reason, failed, reporter.Gateway().Holds)
		}
	}
}
