// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// grpcPort is the name of the port to call if a Service has several.
const grpcPort = "grpc"

// Endpoints holds the endpoints of Services whose EndpointSlices are watched. Extensions that speak gRPC are called
// there, because a connection to a Service's own address leads to one of its Pods. It is safe for concurrent use.
type Endpoints struct {
	mu       sync.Mutex
	services map[types.NamespacedName]*endpointsOf
	synced   func() bool // nil if they are not followed
}

// endpointsOf holds the endpoints of one Service.
type endpointsOf struct {
	slices  map[string]*discoveryv1.EndpointSlice // by name
	changed chan struct{}                         // closed, and replaced, at every change
}

// NewEndpoints returns an empty Endpoints. A Source fills it.
func NewEndpoints() *Endpoints {
	return &Endpoints{services: map[types.NamespacedName]*endpointsOf{}}
}

// Of implements extension.Endpoints.
func (e *Endpoints) Of(host string) (addresses []netip.AddrPort, changed <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.of(serviceAt(host))
	return s.addresses(), s.changed
}

// unserved reports whether it is known that none of the Services with these hosts has an endpoint that serves.
func (e *Endpoints) unserved(hosts []string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.synced == nil || !e.synced() {
		return false
	}
	for _, host := range hosts {
		if s := e.services[serviceAt(host)]; s != nil && s.serves() {
			return false
		}
	}
	return true
}

// serviceAt returns the Service with a host, name.namespace.svc.
func serviceAt(host string) types.NamespacedName {
	name, rest, _ := strings.Cut(host, ".")
	namespace, _, _ := strings.Cut(rest, ".")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// of returns the endpoints of a Service. The caller holds the lock.
func (e *Endpoints) of(service types.NamespacedName) *endpointsOf {
	s := e.services[service]
	if s == nil {
		s = &endpointsOf{slices: map[string]*discoveryv1.EndpointSlice{}, changed: make(chan struct{})}
		e.services[service] = s
	}
	return s
}

// addresses returns the ready endpoints of the port to call, sorted. If none is ready, it returns those that terminate
// but still serve, as kube-proxy does; if the port is not certain, it returns none. Of two families of addresses, it
// takes IPv4.
func (s *endpointsOf) addresses() []netip.AddrPort {
	var ready, serving []netip.AddrPort
	family := discoveryv1.AddressTypeIPv6
	for _, slice := range s.slices {
		if slice.AddressType == discoveryv1.AddressTypeIPv4 {
			family = discoveryv1.AddressTypeIPv4
		}
	}
	for _, slice := range s.slices {
		port, ok := portOf(slice)
		if !ok || slice.AddressType != family {
			continue
		}
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			for _, text := range endpoint.Addresses[:min(1, len(endpoint.Addresses))] { // all are of one Pod
				address, err := netip.ParseAddr(text)
				if err != nil {
					continue
				}
				c := &endpoint.Conditions
				if c.Ready == nil || *c.Ready {
					ready = append(ready, netip.AddrPortFrom(address, port))
				} else if c.Serving != nil && *c.Serving {
					serving = append(serving, netip.AddrPortFrom(address, port))
				}
			}
		}
	}
	if len(ready) == 0 {
		ready = serving
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	return slices.Compact(ready)
}

// serves reports whether an endpoint is ready, or terminates but still serves.
func (s *endpointsOf) serves() bool {
	for _, slice := range s.slices {
		for i := range slice.Endpoints {
			c := &slice.Endpoints[i].Conditions
			if c.Ready == nil || *c.Ready || c.Serving != nil && *c.Serving {
				return true
			}
		}
	}
	return false
}

// portOf returns the port to call: the only one, or the one named grpc. An EndpointSlice does not say to which port of
// the Service its ports belong.
func portOf(slice *discoveryv1.EndpointSlice) (uint16, bool) {
	for i := range slice.Ports {
		p := &slice.Ports[i]
		if p.Port == nil || p.Protocol != nil && *p.Protocol != "TCP" {
			continue
		}
		if len(slice.Ports) == 1 || p.Name != nil && *p.Name == grpcPort {
			return uint16(*p.Port), true
		}
	}
	return 0, false
}

// follow keeps e up to date until ctx is done.
func (e *Endpoints) follow(ctx context.Context, c cache.Cache) error {
	informer, err := c.GetInformer(ctx, &discoveryv1.EndpointSlice{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	following, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { e.set(nil, object) },
		UpdateFunc: e.set,
		DeleteFunc: func(object any) { e.set(object, nil) },
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.synced = following.HasSynced
	return nil
}

// set replaces an EndpointSlice; nil means none. A slice may move to another Service.
func (e *Endpoints) set(before, after any) {
	if unknown, ok := before.(toolscache.DeletedFinalStateUnknown); ok {
		before = unknown.Obj
	}
	old, _ := before.(*discoveryv1.EndpointSlice)
	now, _ := after.(*discoveryv1.EndpointSlice)
	e.mu.Lock()
	defer e.mu.Unlock()
	if old != nil && (now == nil || serviceOf(now) != serviceOf(old)) {
		s := e.of(serviceOf(old))
		delete(s.slices, old.Name)
		s.notify()
		if len(s.slices) == 0 {
			delete(e.services, serviceOf(old)) // its followers call Of again
		}
	}
	if now != nil {
		s := e.of(serviceOf(now))
		s.slices[now.Name] = now
		s.notify()
	}
}

// notify wakes all that wait for a change.
func (s *endpointsOf) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func serviceOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
}

// keepAddresses removes the parts of an EndpointSlice that the cache does not need.
func keepAddresses(object any) (any, error) {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return object, nil
	}
	kept := &discoveryv1.EndpointSlice{
		TypeMeta: slice.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: slice.Name, Namespace: slice.Namespace, UID: slice.UID,
			ResourceVersion: slice.ResourceVersion, Generation: slice.Generation,
			Labels: map[string]string{discoveryv1.LabelServiceName: slice.Labels[discoveryv1.LabelServiceName]},
		},
		AddressType: slice.AddressType, Ports: slice.Ports,
	}
	for i := range slice.Endpoints {
		e := &slice.Endpoints[i]
		kept.Endpoints = append(kept.Endpoints, discoveryv1.Endpoint{Addresses: e.Addresses, Conditions: e.Conditions})
	}
	return kept, nil
}
