// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/registry"
)

// DiscoveredAtAnnotation of an ExtensionConfig says where its handlers were discovered: a LastClient as JSON. After a
// change of spec.clientConfig, they are called there until the extension has been discovered anew, also by replicas
// that start meanwhile.
const DiscoveredAtAnnotation = "runtime.hookgate.dev/discovered-at"

// LastClient says where the handlers of an extension were discovered. Calls trust the CA that the ExtensionConfig has
// now, so it has none.
type LastClient struct {
	URL       string            `json:"url"`
	Protocol  registry.Protocol `json:"protocol,omitempty"`
	InCluster bool              `json:"inCluster,omitempty"`
	// Since is when the ExtensionConfig has been seen to say something else; zero if it does not.
	Since time.Time `json:"since,omitzero"`
}

// LastClientOf returns how a registration is called.
func LastClientOf(r *registry.Registration) *LastClient {
	last := &LastClient{URL: r.ClientConfig.URL, Protocol: r.ClientConfig.Protocol, InCluster: r.ClientConfig.InCluster}
	if r.Pending != nil {
		last.Since = r.Pending.Since
	}
	return last
}

// Is reports whether c calls what l does, whatever CA it trusts.
func (l *LastClient) Is(c *registry.ClientConfig) bool {
	return l.URL == c.URL && l.Protocol == c.Protocol && l.InCluster == c.InCluster
}

// KeepIn makes r, which is as its ExtensionConfig says, call the extension where its handlers were discovered, which a
// nil l does not know. now is when a difference is seen.
func (l *LastClient) KeepIn(r *registry.Registration, now time.Time) {
	if l == nil || l.Is(&r.ClientConfig) {
		return
	}
	c := &r.ClientConfig
	r.Pending = &registry.Pending{URL: c.URL, Protocol: c.Protocol, Since: l.Since}
	if l.Since.IsZero() {
		r.Pending.Since = now.UTC().Truncate(time.Second) // as the annotation has it
	}
	c.URL, c.Protocol, c.InCluster = l.URL, l.Protocol, l.InCluster
}

// String returns the text of DiscoveredAtAnnotation.
func (l *LastClient) String() string {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err) // a time of this era can always be written
	}
	return string(text)
}

// DiscoveredAt returns where the handlers in the status of config were discovered, or nil if it does not say.
func DiscoveredAt(config *runtimev1.ExtensionConfig) (*LastClient, field.ErrorList) {
	text, ok := config.Annotations[DiscoveredAtAnnotation]
	if !ok {
		return nil, nil
	}
	l := &LastClient{}
	err := json.Unmarshal([]byte(text), l)
	if err == nil {
		err = (&registry.ClientConfig{URL: l.URL, Protocol: l.Protocol}).CheckURL()
	}
	if err != nil {
		path := field.NewPath("metadata", "annotations").Key(DiscoveredAtAnnotation)
		return nil, field.ErrorList{field.Invalid(path, text, err.Error())}
	}
	return l, nil
}

// PreviousClient says where the extension of r is called in place of where its ExtensionConfig says; nothing if it is
// called there.
func PreviousClient(r *registry.Registration) string {
	switch p := r.Pending; {
	case p == nil:
		return ""
	case p.URL == r.ClientConfig.URL && r.ClientConfig.Protocol == registry.GRPC:
		return "by gRPC, as before"
	case p.URL == r.ClientConfig.URL:
		return "by REST, as before"
	}
	return "at the previous URL " + r.ClientConfig.URL
}
