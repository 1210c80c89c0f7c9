// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// slice returns an EndpointSlice of Service x in namespace n.
func slice(
	name string,
	family discoveryv1.AddressType,
	ports []discoveryv1.EndpointPort,
	endpoints ...discoveryv1.Endpoint,
) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: family, Ports: ports, Endpoints: endpoints}
	s.Namespace, s.Name, s.Labels = "n", name, map[string]string{discoveryv1.LabelServiceName: "x"}
	return s
}

func port(name string, number int32) discoveryv1.EndpointPort {
	return discoveryv1.EndpointPort{Name: &name, Port: &number}
}

func at(address string, ready, serving *bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{address},
		Conditions: discoveryv1.EndpointConditions{Ready: ready, Serving: serving},
	}
}

func TestEndpointsOf(t *testing.T) {
	yes, no := new(true), new(false)
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	one := []discoveryv1.EndpointPort{port("", 8443)}
	for name, tc := range map[string]struct {
		reason string
		slices []*discoveryv1.EndpointSlice
		want   []string
	}{
		"none":           {"nothing is known", nil, nil},
		"ready":          {"the addresses of all slices, in order; unknown means ready", []*discoveryv1.EndpointSlice{slice("b", v4, one, at("10.0.0.3", yes, nil)), slice("a", v4, one, at("10.0.0.2", nil, nil), at("10.0.0.1", yes, yes))}, []string{"10.0.0.1:8443", "10.0.0.2:8443", "10.0.0.3:8443"}},
		"not ready":      {"only those that are", []*discoveryv1.EndpointSlice{slice("a", v4, one, at("10.0.0.1", no, yes), at("10.0.0.2", yes, yes))}, []string{"10.0.0.2:8443"}},
		"terminating":    {"better than none", []*discoveryv1.EndpointSlice{slice("a", v4, one, at("10.0.0.1", no, yes), at("10.0.0.2", no, no))}, []string{"10.0.0.1:8443"}},
		"nobody":         {"no address is left", []*discoveryv1.EndpointSlice{slice("a", v4, one, at("10.0.0.1", no, no))}, nil},
		"twice":          {"slices may overlap while they are rearranged", []*discoveryv1.EndpointSlice{slice("a", v4, one, at("10.0.0.1", yes, nil)), slice("b", v4, one, at("10.0.0.1", yes, nil))}, []string{"10.0.0.1:8443"}},
		"two families":   {"each Pod once", []*discoveryv1.EndpointSlice{slice("a", v6, one, at("fd00::1", yes, nil)), slice("b", v4, one, at("10.0.0.1", yes, nil))}, []string{"10.0.0.1:8443"}},
		"IPv6":           {"as good", []*discoveryv1.EndpointSlice{slice("a", v6, one, at("fd00::1", yes, nil))}, []string{"[fd00::1]:8443"}},
		"port named":     {"several ports, and one is named grpc", []*discoveryv1.EndpointSlice{slice("a", v4, []discoveryv1.EndpointPort{port("web", 80), port("grpc", 9090)}, at("10.0.0.1", yes, nil))}, []string{"10.0.0.1:9090"}},
		"port uncertain": {"several ports, and none is named grpc", []*discoveryv1.EndpointSlice{slice("a", v4, []discoveryv1.EndpointPort{port("web", 80), port("api", 9090)}, at("10.0.0.1", yes, nil))}, nil},
		"UDP":            {"not TCP", []*discoveryv1.EndpointSlice{slice("a", v4, []discoveryv1.EndpointPort{{Port: new(int32(53)), Protocol: new(corev1.ProtocolUDP)}}, at("10.0.0.1", yes, nil))}, nil},
		"names":          {"of a kind that cannot be called", []*discoveryv1.EndpointSlice{slice("a", discoveryv1.AddressTypeFQDN, one, at("x.example", yes, nil))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := NewEndpoints()
			for _, s := range tc.slices {
				kept, err := keepAddresses(s)
				if err != nil {
					t.Fatal(err)
				}
				e.set(nil, kept)
			}
			got, _ := e.Of("x.n.svc")
			if diff := cmp.Diff(tc.want, texts(got)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
			if other, _ := e.Of("x.m.svc"); len(other) > 0 {
				t.Errorf("the Service of that name in another namespace has %v", other)
			}
		})
	}
}

func TestEndpointsChange(t *testing.T) {
	e := NewEndpoints()
	one := []discoveryv1.EndpointPort{port("", 8443)}
	first, second := slice(
		"a",
		discoveryv1.AddressTypeIPv4,
		one,
		at("10.0.0.1", nil, nil),
	), slice(
		"a",
		discoveryv1.AddressTypeIPv4,
		one,
		at("10.0.0.2", nil, nil),
	)
	moved := slice("a", discoveryv1.AddressTypeIPv4, one, at("10.0.0.2", nil, nil))
	moved.Labels = map[string]string{discoveryv1.LabelServiceName: "y"}
	_, unrelated := e.Of("z.n.svc")
	for _, step := range []struct {
		reason        string
		before, after any
		want          []string
	}{
		{"it comes", nil, first, []string{"10.0.0.1:8443"}},
		{"it changes", first, second, []string{"10.0.0.2:8443"}},
		{"it goes over to another Service", second, moved, nil},
		{"it comes back", moved, second, []string{"10.0.0.2:8443"}},
		{"it goes, and the watch missed that", toolscache.DeletedFinalStateUnknown{Key: "n/a", Obj: second}, nil, nil},
	} {
		_, changed := e.Of("x.n.svc")
		e.set(step.before, step.after)
		select {
		case <-changed:
		default:
			t.Errorf("%s: no follower is notified", step.reason)
		}
		got, _ := e.Of("x.n.svc")
		if diff := cmp.Diff(step.want, texts(got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", step.reason, diff)
		}
	}
	select {
	case <-unrelated:
		t.Error("followers of another Service are notified")
	default:
	}
}

func texts(addresses []netip.AddrPort) []string {
	var list []string
	for _, a := range addresses {
		list = append(list, a.String())
	}
	return list
}
