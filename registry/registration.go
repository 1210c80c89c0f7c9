// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/policy"
)

// Registration is one ExtensionConfig as the gateway needs it: where the extension is, for whom it is called, and which
// handlers it has. It is immutable once it was handed to Registry.Apply.
type Registration struct {
	// Name is the name of the ExtensionConfig, a DNS-1123 label.
	Name         string
	ClientConfig ClientConfig
	// NamespaceSelector decides by the labels of a request's namespace. Nil matches all.
	NamespaceSelector labels.Selector
	// Settings are added to every request; the request's own win.
	Settings map[string]string
	// Handlers are those that discovery found, under the names that discovery gave.
	Handlers []Handler
}

// Protocol is what an extension speaks.
type Protocol string

// The protocols. The zero Protocol is JSON over HTTPS, the mandated one.
const (
	REST Protocol = ""
	GRPC Protocol = "GRPC"
)

// The schemes that URLs of extensions can have, besides https. Those without TLS are for what is on the same machine.
const (
	SchemeGRPC  = "grpc"
	SchemeGRPCS = "grpcs"
	SchemeUnix  = "unix"
)

// schemes returns those that URLs of extensions can have that speak p.
func (p Protocol) schemes() []string {
	if p == GRPC {
		return []string{"https", SchemeGRPCS, SchemeGRPC, SchemeUnix}
	}
	return []string{"https"}
}

func (p Protocol) prefixes() []string {
	prefixes := p.schemes()
	for i := range prefixes {
		prefixes[i] += "://"
	}
	return prefixes
}

// ClientConfig says how to reach an extension.
type ClientConfig struct {
	// Protocol is REST unless it is set.
	Protocol Protocol
	// URL has neither user, query nor fragment. For REST it is https://host[:port][/prefix]; for GRPC https:// or
	// grpcs://host[:port], grpc://host:port on loopback, or unix:///path.
	URL string
	// InCluster tells that URL names a Service of the cluster, which is never called through a proxy.
	InCluster bool
	// CABundle is PEM. Empty means the system's roots.
	CABundle []byte
}

// Handler is one handler of an extension, as discovery described it, with defaults filled in.
type Handler struct {
	// Name is a DNS-1123 label, unique within the extension.
	Name string
	Hook hook.GroupVersionHook
	// Timeout bounds one call: more than 0, at most 30 s.
	Timeout       time.Duration
	FailurePolicy hook.FailurePolicy
	// ClusterAPIVersion is the version of embedded Cluster API objects that the handler understands: "v1beta1" or "v1beta2"
	// of the API group cluster.x-k8s.io. Empty means that nobody says, and that objects stay as they come.
	ClusterAPIVersion string
}

// Entry is one registered handler in a snapshot.
type Entry struct {
	// Name is the registered name, <handler>.<ExtensionConfig>; in a Registry for one extension alone, the handler's own.
	Name string
	// Label is Name as a DNS-1123 label: the name under which the gateway's own discovery offers the handler. It
	// depends on Name alone, so it stays when other handlers come and go.
	Label string

	// Handler is the handler as it is called: as discovery described it, with the timeout, the failure policy and the
	// version of objects that Policy has. Registration has it without them.
	Handler      Handler
	Registration *Registration
	// Policy is what the operator says about the handler; nil if nothing.
	Policy *policy.Policy
}
