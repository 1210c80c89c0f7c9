// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/alloctest"
)

// FuzzRequest holds every conversion to: no panic, JSON comes out, and the way back gives the object again, but for
// what was declared lost.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(hubMachine), uint8(1))
	f.Add([]byte(oldMachineSet), uint8(2))
	f.Add(sampleCluster(f), uint8(0))
	for _, object := range []string{
		`{"metadata":{"namespace":"n"},"spec":{"paused":true,"unknown":{"a":[{"b":null}]},"topology":{"class":"c","version":"v1","variables":[{"name":"a","value":1e3,"definitionFrom":"x"}]}},"status":{"failureDomains":{"b":{"controlPlane":true},"a":{"new":1}}}}`,
		`{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","metadata":{"annotations":{"cluster.x-k8s.io/conversion-data":"{}"}},"spec":{"clusterNetwork":{"pods":{"cidrBlocks":[""]},"new":{}},"controlPlaneRef":{"kind":"KubeadmControlPlane","apiVersion":"controlplane.cluster.x-k8s.io/v1beta1","new":1}}}`,
		`{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","spec":{"topology":{"workers":{"machineDeployments":[null,{"rollout":{"after":"2026-01-01T00:00:00+01:00"},"new":1}]}}},"status":{"conditions":[{"type":"a","new":1}],"failureDomains":[{"name":"b"},{"name":"a"}]}}`,
	} {
		f.Add([]byte(object), uint8(0))
	}
	objects := sampleObjects()
	memory := alloctest.Bound{Base: 1 << 20, PerByte: 4 << 10}
	f.Fuzz(func(t *testing.T, object []byte, which uint8) {
		for _, to := range []string{V1Beta1, V1Beta2} {
			req, get := requestWith(object, which)
			var c Converted
			var err error
			memory.Check(t, len(object), func() { c, err = objects.Request(req, to) })
			if err != nil {
				if kind := hook.KindOf(err); kind != hook.InvalidRequest && kind != hook.Conversion {
					t.Errorf("error of kind %v: %v", kind, err)
				}
				continue
			}
			if c.Message == req {
				continue
			}
			converted := get(c.Message)
			if !json.Valid(object) {
				t.Fatalf("%s was converted though it is not JSON", object)
			}
			if !json.Valid(converted) {
				t.Fatalf("not JSON: %s", converted)
			}
			from := map[string]string{V1Beta1: V1Beta2, V1Beta2: V1Beta1}[to]
			lost := c.Losses
			back, err := objects.Request(c.Message, from)
			if err != nil {
				if hook.KindOf(err) != hook.Conversion || !strings.Contains(err.Error(), "Ref: cannot look up the version of kind") {
					t.Errorf("back: %v", err)
				}
				continue // a reference to an unknown kind
			}
			k := objects.kinds[[]string{"cluster", "machine", "machineSet", "machinePool"}[which%4]]
			kept(t, k.path, parsed(t, object), parsed(t, get(back.Message)), lost)
		}
	})
}

// requestWith returns a request with an object at a place for it, and how to get it out again.
func requestWith(object []byte, which uint8) (proto.Message, func(proto.Message) []byte) {
	ext := &hooksv1alpha1.RawExtension{Raw: object}
	switch which % 4 {
	case 1:
		return &hooksv1alpha1.UpdateMachineRequest{Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: ext}},
			func(m proto.Message) []byte { return m.(*hooksv1alpha1.UpdateMachineRequest).Desired.Machine.Raw }
	case 2:
		return &hooksv1alpha1.CanUpdateMachineSetRequest{Desired: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: ext}},
			func(m proto.Message) []byte {
				return m.(*hooksv1alpha1.CanUpdateMachineSetRequest).Desired.MachineSet.Raw
			}
	case 3:
		subject := &infrastructurev1alpha1.Subject{MachinePool: ext}
		return &infrastructurev1alpha1.ReconcileMachinePoolRequest{Subject: subject},
			func(m proto.Message) []byte {
				return m.(*infrastructurev1alpha1.ReconcileMachinePoolRequest).Subject.MachinePool.Raw
			}
	}
	return &hooksv1alpha1.AfterClusterUpgradeRequest{Cluster: ext},
		func(m proto.Message) []byte { return m.(*hooksv1alpha1.AfterClusterUpgradeRequest).Cluster.Raw }
}

// kept checks that all of was is in is, unless its path was declared lost. Absent, zero and empty are the same.
func kept(t *testing.T, path string, was, is any, lost []string) {
	t.Helper()
	for _, l := range lost {
		if path == l || strings.HasPrefix(path, l+".") || strings.HasPrefix(path, l+"[*]") {
			return
		}
	}
	switch w := was.(type) {
	case map[string]any:
		i, _ := is.(map[string]any)
		for name, value := range w {
			switch {
			case strings.HasSuffix(path, ".metadata.annotations") && name == dataAnnotation:
			case path == "cluster.status.failureDomains":
				kept(t, path+"[*]", value, i[name], lost)
			default:
				kept(t, path+"."+shortened(name), value, i[name], lost)
			}
		}
	case []any:
		i, _ := is.([]any)
		for n, value := range w {
			var element any
			if n < len(i) {
				element = i[n]
			}
			if path == "cluster.status.failureDomains" {
				element = named(i, value)
			}
			kept(t, path+"[*]", value, element, lost)
		}
	case json.Number:
		if f, err := strconv.ParseFloat(w.String(), 64); err == nil && f == 0 {
			return
		}
		if is != was {
			t.Errorf("%s was %v, is %v, and that is not among %v", path, was, is, lost)
		}
	case string:
		if i, _ := is.(string); w != "" && i != w && !sameTime(w, i) {
			t.Errorf("%s was %q, is %v, and that is not among %v", path, was, is, lost)
		}
	case bool:
		if w && is != was {
			t.Errorf("%s was true, is %v, and that is not among %v", path, is, lost)
		}
	}
}

// named returns the element of a list that has the name of value.
func named(list []any, value any) any {
	object, _ := value.(map[string]any)
	for _, element := range list {
		if other, ok := element.(map[string]any); ok &&
			(other["name"] == object["name"] || other["name"] == nil && object["name"] == "") {
			return element
		}
	}
	return nil
}

// sameTime reports whether two texts are one time, in whole seconds, or one duration: there are several ways to write
// them.
func sameTime(a, b string) bool {
	if a, err := time.ParseDuration(a); err == nil {
		b, err := time.ParseDuration(b)
		return a == 0 || err == nil && a == b
	}
	s, err := time.Parse(time.RFC3339, a)
	if err != nil {
		return false
	}
	o, err := time.Parse(time.RFC3339, b)
	return s.IsZero() || err == nil && s.Unix() == o.Unix()
}
