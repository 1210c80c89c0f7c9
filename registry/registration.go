// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
)

// Registration is one ExtensionConfig in the form that the gateway needs. In a Snapshot it is immutable.
type Registration struct {
	// Name is the name of the ExtensionConfig, a DNS-1123 label.
	Name         string
	ClientConfig ClientConfig
	// InProcess answers the calls, if there is no server: ClientConfig is empty then.
	InProcess Answerer
	// Audit keeps the answers of InProcess from callers. They are only reported.
	Audit bool
	// Selection restricts the requests that the handlers are for, besides the operator's policy. Nil restricts nothing.
	Selection *Policy
	// NamespaceSelector matches the labels of a request's namespace. Nil matches all.
	NamespaceSelector labels.Selector
	// Settings are added to every request; settings of the request take precedence.
	Settings map[string]string
	// Handlers lists the handlers that discovery found, with their names there.
	Handlers []Handler
	// Pending is set while ClientConfig is where the handlers were discovered, and the ExtensionConfig names another
	// place, where the extension has not been discovered yet.
	Pending *Pending
}

// Pending is a change of a clientConfig that waits for a discovery. It is immutable.
type Pending struct {
	// URL and Protocol are what the ExtensionConfig says.
	URL      string
	Protocol Protocol
	// Since is when that was seen first.
	Since time.Time
}

// Protocol is the protocol of an extension.
type Protocol string

// The protocols. REST, the zero value, is the JSON over HTTPS of Cluster API.
const (
	REST Protocol = ""
	GRPC Protocol = "GRPC"
)

// The schemes of extension URLs other than https. Schemes without TLS are limited to the same machine.
const (
	SchemeGRPC  = "grpc"
	SchemeGRPCS = "grpcs"
	SchemeUnix  = "unix"
)

// schemes returns the valid schemes of URLs for p.
func (p Protocol) schemes() []string {
	if p == GRPC {
		return []string{"https", SchemeGRPCS, SchemeGRPC, SchemeUnix}
	}
	return []string{"https"}
}

// ProtocolOf returns the protocol that the scheme of a URL stands for: GRPC for grpcs, grpc and unix.
func ProtocolOf(url string) Protocol {
	scheme, _, _ := strings.Cut(url, "://")
	switch strings.ToLower(scheme) {
	case SchemeGRPCS, SchemeGRPC, SchemeUnix:
		return GRPC
	}
	return REST
}

// ClientConfig says how to reach an extension.
type ClientConfig struct {
	// Owner is the name of the ExtensionConfig, which shares connections with no other: what a server says unasked on
	// one of them could become the answer of another.
	Owner string
	// Protocol is REST unless it is set.
	Protocol Protocol
	// URL has neither user, query nor fragment. For REST it is https://host[:port][/prefix]; for GRPC https:// or
	// grpcs://host[:port], grpc://host:port on loopback, or unix:///path.
	URL string
	// InCluster means that URL names a Service of the cluster, which is never called through a proxy.
	InCluster bool
	// CABundle holds certificates in PEM. Empty means the system's roots.
	CABundle []byte
}

func (c *ClientConfig) equal(o *ClientConfig) bool {
	return c.Owner == o.Owner && c.Protocol == o.Protocol && c.URL == o.URL && c.InCluster == o.InCluster &&
		bytes.Equal(c.CABundle, o.CABundle)
}

// Handler is a handler of an extension as discovery described it, with defaults applied.
type Handler struct {
	// Name is a DNS-1123 label, unique within the extension.
	Name string
	Hook hook.GroupVersionHook
	// Timeout bounds one call: more than 0, at most 30 s.
	Timeout       time.Duration
	FailurePolicy hook.FailurePolicy
	// ClusterAPIVersion is the version of cluster.x-k8s.io, "v1beta1" or "v1beta2", that the handler understands in
	// embedded objects. Empty means that it is unknown and that objects are not converted.
	ClusterAPIVersion string
	// ClusterAPIRelease is the minor release of Cluster API whose requests the handler understands, such as v1.12. Empty
	// means that requests are sent as they come.
	ClusterAPIRelease string
	// Everything makes the handler one for all requests, whatever the selectors and conditions of its registration say.
	// No policy applies to it.
	Everything bool
	// Gateways has the ids of the gateways that a call passes after this one, as via.Path has them.
	Gateways string
}

// Entry is a registered handler in a snapshot.
type Entry struct {
	// Name is the registered name, <handler>.<ExtensionConfig>; in a registry of NewSidecar it is the handler's own name.
	Name string
	// Label is Name as a DNS-1123 label, under which the gateway's own discovery offers the handler. It depends on
	// Name alone, so it stays the same when other handlers come and go.
	Label string

	// Handler is the handler of Registration with the settings of Policy applied.
	Handler      Handler
	Registration *Registration
	// Policy is the operator's policy for the handler, completed from OfExtension, or nil.
	Policy *Policy
	// OfExtension is the operator's policy for the whole extension, or nil.
	OfExtension *Policy
	// Variants are the handlers, one of which is called in place of this one, if it is of a Rollout; nil otherwise.
	Variants *Variants
}
