// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hookgate/hookgate/catalog"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// Infrastructure describes the infrastructure that the checks of it make and delete. Its zero value has no parameters
// and no credentials.
type Infrastructure struct {
	// Cluster, Machine and MachinePool are the parameters of each, JSON objects of the schemas that the extension
	// announces.
	Cluster     json.RawMessage `json:"cluster,omitempty"`
	Machine     json.RawMessage `json:"machine,omitempty"`
	MachinePool json.RawMessage `json:"machinePool,omitempty"`
	// Credentials are sent as those of a Secret. They never appear in a report.
	Credentials map[string]string `json:"credentials,omitempty"`
	// Version is the Kubernetes version of machines; by default "v1.34.0".
	Version string `json:"version,omitempty"`
	// Bootstrap is the cloud-config that machines start with; by default an empty one.
	Bootstrap string `json:"bootstrap,omitempty"`
	// WaitSeconds is how long a cluster, a machine or a pool may take to be ready, and to be gone; by default 300.
	WaitSeconds int32 `json:"waitSeconds,omitempty"`
}

func (i *Infrastructure) version() string { return cmp.Or(i.Version, "v1.34.0") }

func (i *Infrastructure) bootstrap() []byte {
	return []byte(cmp.Or(i.Bootstrap, "#cloud-config\n{}\n"))
}

func (i *Infrastructure) wait() time.Duration {
	return time.Duration(cmp.Or(max(i.WaitSeconds, 0), 300)) * time.Second
}

// check returns an error unless the parameters are JSON objects.
func (i *Infrastructure) check() error {
	for name, raw := range map[string]json.RawMessage{
		"cluster": i.Cluster, "machine": i.Machine, "machinePool": i.MachinePool,
	} {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); len(raw) > 0 && err != nil {
			return fmt.Errorf("the parameters of infrastructure: %s: want an object", name)
		}
	}
	return nil
}

// provider is what a session knows of an extension that provides infrastructure.
type provider struct {
	options   *Infrastructure // nil means that nothing may be made
	discovery *catalog.Hook
	first     *exchange // the answer of DiscoverInfrastructure
	described *exchange // the one that announces parameters, which a gateway passes on from one extension
	absent    string    // why there is no infrastructure to check; empty if there is
	handlers  map[string]*handler
	once      *trial
}

// discoverInfrastructure asks for the handlers of infrastructure. An extension that provides none is not asked for
// more, unless the caller says that it does.
func (s *session) discoverInfrastructure(ctx context.Context) {
	p := &s.provider
	h, ok := s.catalog.ByName("DiscoverInfrastructure")
	if !ok || h.Group != hook.InfrastructureGroup {
		p.absent = "the hooks of infrastructure are not checked"
		return
	}
	p.discovery = h
	ctx, cancel := context.WithTimeout(ctx, limits.DiscoveryTimeout)
	defer cancel()
	p.first = s.transport.call(ctx, h, "", h.Request.New().Interface())
	p.described = p.first
	if p.first.status() != success {
		if p.options == nil {
			p.absent = "the extension does not answer DiscoverInfrastructure, so it provides no infrastructure"
		}
		return
	}
	if len(p.first.parsed.Handlers) == 0 && p.options == nil {
		p.absent = "the extension lists no handlers of infrastructure, so it provides none"
		return
	}
	p.handlers = map[string]*handler{}
	for _, a := range p.first.parsed.Handlers {
		gvh, err := hook.Parse(a.RequestHook.APIVersion, a.RequestHook.Hook)
		known, ok := s.catalog.Lookup(gvh)
		if err != nil || !ok || known.Group != hook.InfrastructureGroup || known.Singleton() ||
			len(validation.IsDNS1123Label(a.Name)) > 0 || p.handlers[known.Hook] != nil {
			continue // the checks of discovery say it
		}
		p.handlers[known.Hook] = &handler{
			name: a.Name, hook: known, timeout: timeoutOf(a), understands: s.understoodBy(a),
		}
	}
	if handlers := p.first.parsed.Handlers; p.prefix() == "" && len(handlers) > 0 {
		if x := s.transport.call(ctx, h, handlers[0].Name, h.Request.New().Interface()); x.status() == success {
			p.described = x
		}
	}
}

// answers reports whether the extension lists handlers of infrastructure.
func (p *provider) answers() bool { return p.first != nil && p.first.status() == success }

// prefix returns the beginning of all provider IDs that the extension announces.
func (p *provider) prefix() string {
	if a, ok := p.described.message.(*infrastructurev1alpha1.DiscoverInfrastructureResponse); ok {
		return a.GetProviderIdPrefix()
	}
	return ""
}

// inspect adds what is wrong with one answer, whatever it is an answer to.
func (t *trial) inspect(x *exchange) {
	t.try(checkStates)
	switch a := x.message.(type) {
	case nil:
		if x.outcome == answered { // without an answer, the provider knows nothing, and calls again
			t.failf(checkStates, x, "the answer cannot be read: %v", x.wrong)
		}
		return
	case interface {
		GetPhase() infrastructurev1alpha1.Phase
		GetReason() string
	}:
		if x.status() == success && a.GetPhase() == infrastructurev1alpha1.Phase_PHASE_UNSPECIFIED {
			t.failf(checkStates, x, "the status is Success, but there is no phase")
		}
		if a.GetPhase() == infrastructurev1alpha1.Phase_PHASE_FAILED && a.GetReason() == "" {
			t.failf(checkStates, x, "the phase is Failed, but there is no reason")
		}
	case interface {
		GetState() infrastructurev1alpha1.DeletionState
	}:
		if x.status() == success && a.GetState() == infrastructurev1alpha1.DeletionState_DELETION_STATE_UNSPECIFIED {
			t.failf(checkStates, x, "the status is Success, but there is no state")
		}
	}
	t.listed(x)
	t.addressed(x)
	t.inspectSecrets(x)
}

// addressTypes are those of Cluster API's Machines.
var addressTypes = []string{"Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"}

// addressed adds what is wrong with the types of the addresses in an answer.
func (t *trial) addressed(x *exchange) {
	var addresses []*infrastructurev1alpha1.MachineAddress
	switch a := x.message.(type) {
	case *infrastructurev1alpha1.ReconcileMachineResponse:
		addresses = a.GetAddresses()
	case *infrastructurev1alpha1.ReconcileMachinePoolResponse:
		for _, i := range a.GetInstances() {
			addresses = append(addresses, i.GetAddresses()...)
		}
	}
	for _, a := range addresses {
		t.try(checkAddresses)
		if !slices.Contains(addressTypes, a.GetType()) {
			t.failf(checkAddresses, x, "the type of address %q is %q", a.GetAddress(), a.GetType())
		}
	}
}

// inspectSecrets looks for what an answer must not repeat.
func (t *trial) inspectSecrets(x *exchange) {
	for _, name := range slices.Sorted(maps.Keys(t.options.Credentials)) {
		secret := t.options.Credentials[name]
		if len(secret) < minSecret {
			continue
		}
		t.try(checkSecrets)
		if strings.Contains(string(x.body), quoted(secret)) {
			t.failf(checkSecrets, x, "the answer has the value of the credential %q", name)
		}
	}
}

// minSecret is the length of the shortest credential that is looked for: a shorter one, such as a user name of "x", is
// in any text.
const minSecret = 6

// quoted returns a text as it is within a JSON string.
func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return strings.Trim(string(text), `"`)
}

// ready returns whether an answer says Ready.
func ready(m proto.Message) bool {
	a, ok := m.(interface {
		GetPhase() infrastructurev1alpha1.Phase
	})
	return ok && a.GetPhase() == infrastructurev1alpha1.Phase_PHASE_READY
}

// gone returns whether an answer says Gone.
func gone(m proto.Message) bool {
	a, ok := m.(interface {
		GetState() infrastructurev1alpha1.DeletionState
	})
	return ok && a.GetState() == infrastructurev1alpha1.DeletionState_DELETION_STATE_GONE
}
