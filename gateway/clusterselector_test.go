// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/labels"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

// fixedClusters are the labels of Clusters by namespace/name.
type fixedClusters map[string]map[string]string

func (c fixedClusters) ClusterLabels(namespace, name string) (of map[string]string, known bool) {
	of, known = c[namespace+"/"+name]
	return of, known
}

// Steps of in-place chains are chosen by the labels of the Cluster, whatever labels the Machine and the MachineSet have,
// so that all three hooks choose the same. While these are not known, no step is passed over.
func TestInPlaceStepsSelectByCluster(t *testing.T) {
	object := func(labels, spec string) *hooksv1alpha1.RawExtension {
		return &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n","labels":{` + labels + `}},"spec":{` + spec + `}}`)}
	}
	const ofCluster = `"clusterName":"c"`
	machineSet := func(labels, spec string) proto.Message {
		o := object(labels, spec)
		return &hooksv1alpha1.CanUpdateMachineSetRequest{
			Current: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: o},
			Desired: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: object(labels, spec+`,"template":{"spec":{"version":"v2"}}`)},
		}
	}
	machine := func(labels, spec string) proto.Message {
		return &hooksv1alpha1.CanUpdateMachineRequest{
			Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: object(labels, spec)},
			Desired: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: object(labels, spec+`,"version":"v2"`)},
		}
	}
	update := func(labels, spec string) proto.Message {
		return &hooksv1alpha1.UpdateMachineRequest{Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: object(labels, spec)}}
	}
	answers := map[string]proto.Message{
		"CanUpdateMachine":    &hooksv1alpha1.CanUpdateMachineResponse{Status: success},
		"CanUpdateMachineSet": &hooksv1alpha1.CanUpdateMachineSetResponse{Status: success},
		"UpdateMachine":       &hooksv1alpha1.UpdateMachineResponse{Status: success},
	}
	const (
		fails   = `NotReady: `
		unknown = fails + `the objectSelector of ExtensionPolicy "p" for step "b.e" of HandlerChain "chain" depends on the labels of Cluster "n/c", which are not known: try again; the gateway has to be allowed to list and watch clusters of cluster.x-k8s.io`
		none    = fails + `HandlerChain "chain" cannot be called: the objectSelector of ExtensionPolicy "p" for step "b.e" selects Clusters, but a gateway without a cluster does not know the labels of Clusters: use matchConditions or a namespaceSelector`
	)
	for hookName, request := range map[string]func(labels, spec string) proto.Message{
		"CanUpdateMachine": machine, "CanUpdateMachineSet": machineSet, "UpdateMachine": update,
	} {
		member := map[string]string{"CanUpdateMachine": "current.machine", "CanUpdateMachineSet": "current.machineSet", "UpdateMachine": "desired.machine"}[hookName]
		f := newChain(t, hookName, answers[hookName], answers[hookName])
		f.registry.SetPolicies("e", registry.Policies{Handlers: map[string]*policy.Policy{
			"b": {Name: "p", ObjectSelector: labels.SelectorFromSet(labels.Set{"disks": "local"})},
		}})
		for reason, tt := range map[string]struct {
			clusters     Clusters
			labels, spec string
			called       string
			err          string
		}{
			"the Cluster has the label":             {fixedClusters{"n/c": {"disks": "local"}}, "", ofCluster, "a.e b.e", ""},
			"it has another":                        {fixedClusters{"n/c": {"disks": "far"}}, "", ofCluster, "a.e", ""},
			"only the object of the request has it": {fixedClusters{"n/c": nil}, `"disks":"local"`, ofCluster, "a.e", ""},
			"another Cluster has it":                {fixedClusters{"n/c": nil, "m/c": {"disks": "local"}}, "", ofCluster, "a.e", ""},
			"the Cluster is not known":              {fixedClusters{}, `"disks":"local"`, ofCluster, "", unknown},
			"no Clusters are known":                 {nil, `"disks":"local"`, ofCluster, "", none},
			"the object names no Cluster":           {fixedClusters{}, "", `"a":1`, "", "InvalidRequest: " + member + ".spec.clusterName: required"},
			"the object names two":                  {fixedClusters{}, "", ofCluster + `,"clusterName":"d"`, "", "InvalidRequest: " + member + ".spec.clusterName: occurs twice in one object"},
		} {
			f.config.Clusters = tt.clusters
			m, err := f.call(t, request(tt.labels, tt.spec))
			if called := strings.Join(f.called, " "); called != tt.called || err != tt.err {
				t.Errorf("%s: %s: called %q, want %q; answered %v %s, want %s", hookName, reason, called, tt.called, m, err, tt.err)
			}
		}
	}
}

// Conditions of a step are asked as well, and those of the chain's other hooks select by what they are about.
func TestInPlaceStepsHaveConditionsToo(t *testing.T) {
	f := newChain(t, "UpdateMachine", &hooksv1alpha1.UpdateMachineResponse{Status: success}, &hooksv1alpha1.UpdateMachineResponse{Status: success})
	f.config.Clusters = fixedClusters{"n/c": {"disks": "local"}}
	f.registry.SetPolicies("e", registry.Policies{Handlers: map[string]*policy.Policy{"b": {
		Name: "p", ObjectSelector: labels.SelectorFromSet(labels.Set{"disks": "local"}),
		Conditions: conditions(t, `request.desired.machine.spec.version == "v2"`),
	}}})
	for version, called := range map[string]string{"v1": "a.e", "v2": "a.e b.e"} {
		machine := &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n"},"spec":{"clusterName":"c","version":"` + version + `"}}`)}
		if _, err := f.call(t, &hooksv1alpha1.UpdateMachineRequest{Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: machine}}); err != "" || strings.Join(f.called, " ") != called {
			t.Errorf("%s: called %q, want %q; %s", version, strings.Join(f.called, " "), called, err)
		}
	}
}
