// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/infrastructure/capacity"
	"github.com/hookgate/hookgate/infrastructure/parameters"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// The checks to which the trial adds what it finds.
const (
	checkGone        = "infrastructure.gone"
	checkReady       = "infrastructure.ready"
	checkStates      = "infrastructure.states"
	checkSame        = "infrastructure.same"
	checkSole        = "infrastructure.sole"
	checkProviderIDs = "infrastructure.provider-ids"
	checkLists       = "infrastructure.lists"
	checkRemove      = "infrastructure.remove"
	checkSecrets     = "infrastructure.secrets"
	checkAgain       = "infrastructure.again"
	checkDeleted     = "infrastructure.deleted"
	checkAddresses   = "infrastructure.addresses"
)

// Each of these is about what the extension announces, and makes nothing; the others are about the trial.
var infrastructureChecks = []Check{
	{
		ID: "infrastructure.discovery", Level: Must,
		Rule: "DiscoverInfrastructure answers with status Success, and lists handlers of its own group, with names " +
			"that no other handler has, and with timeouts from 0 to 30.",
		Source: infrastructureContract + "discovery.proto",
		run: func(_ context.Context, s *session, v *verdict) {
			p := &s.provider
			switch {
			case p.first == nil || p.absent != "":
				v.skipf("%s", p.absent)
				return
			case !p.answers():
				v.failf(p.first, "there is no answer with status Success")
				return
			case len(p.first.parsed.Handlers) > limits.Handlers:
				v.failf(p.first, "there are %d handlers, which is more than %d", len(p.first.parsed.Handlers), limits.Handlers)
			}
			seen := map[string]bool{}
			for _, a := range s.announced {
				seen[a.Name] = true
			}
			for i, a := range p.first.parsed.Handlers {
				if problem := s.wrongHandler(a, p.discovery.GroupVersionHook, seen); problem != "" {
					v.failf(p.first, "handlers[%d]: %s", i, problem)
				}
				seen[a.Name] = true
			}
		},
	},
	{
		ID: "infrastructure.failure-policies", Level: Must,
		Rule: "Infrastructure handlers have the failure policy Fail, or none: if a failed call were ignored, a provider " +
			"would not know what exists.",
		Source: infrastructureContract + "discovery.proto",
		run: ofProvider(func(p *provider, v *verdict) {
			for i, a := range p.first.parsed.Handlers {
				if a.FailurePolicy != nil && *a.FailurePolicy != string(hook.Fail) {
					v.failf(p.first, "handlers[%d]: failurePolicy is %q, not %q", i, *a.FailurePolicy, hook.Fail)
				}
			}
		}),
	},
	{
		ID: "infrastructure.pairs", Level: Must,
		Rule: "An extension that makes clusters, machines or pools also has handlers to delete them. The extension has " +
			"handlers for machines, for pools, or for both.",
		Source: infrastructureContract + "machine.proto",
		run: ofProvider(func(p *provider, v *verdict) {
			for _, kind := range []string{"Cluster", "Machine", "MachinePool"} {
				if makes, deletes := p.handlers["Reconcile"+kind], p.handlers["Delete"+kind]; (makes == nil) != (deletes == nil) {
					v.failf(p.first, "there is only one of Reconcile%s and Delete%[1]s", kind)
				}
			}
			if p.handlers["ReconcileMachine"] == nil && p.handlers["ReconcileMachinePool"] == nil {
				v.failf(p.first, "there is no handler that makes machines")
			}
		}),
	},
	{
		ID: "infrastructure.prefix", Level: Must,
		Rule:   "DiscoverInfrastructure announces the prefix of provider IDs, such as \"acme://\".",
		Source: infrastructureContract + "discovery.proto",
		run: ofProvider(func(p *provider, v *verdict) {
			if prefix := p.prefix(); !providerIDPrefix.MatchString(prefix) {
				v.failf(p.described, "providerIdPrefix is %q", prefix)
			}
		}),
	},
	{
		ID: "infrastructure.schemas", Level: Must,
		Rule: "The schemas of parameters are structural schemas of objects, like those of a " +
			"CustomResourceDefinition.",
		Source: infrastructureContract + "discovery.proto",
		run: ofProvider(func(p *provider, v *verdict) {
			a, ok := p.described.message.(*infrastructurev1alpha1.DiscoverInfrastructureResponse)
			if !ok {
				v.failf(p.described, "the answer cannot be read: %v", p.described.wrong)
				return
			}
			for _, s := range []struct {
				name string
				text []byte
			}{
				{"clusterParameters", a.GetClusterParameters().GetRaw()}, {"machineParameters", a.GetMachineParameters().GetRaw()},
				{"machinePoolParameters", a.GetMachinePoolParameters().GetRaw()},
			} {
				if _, err := parameters.Compile(s.text); err != nil {
					v.failf(p.described, "%s: %v", s.name, err)
				}
			}
		}),
	},
	{
		ID: "infrastructure.capacities", Level: Must,
		Rule: "An announced capacity of machines has quantities of Kubernetes resources, an architecture or an " +
			"operating system. The extension announces at most 500 capacities, and at most 256 KiB in total; otherwise, " +
			"Hookgate uses none of them.",
		Source: infrastructureContract + "discovery.proto, MachineCapacity",
		run: ofProvider(func(p *provider, v *verdict) {
			if list, ok := p.capacities(v); ok {
				if _, err := capacity.Decide(list); err != nil {
					v.failf(p.described, "%v", err)
				}
			}
		}),
	},
	{
		ID: "infrastructure.capacity-parameters", Level: Should,
		Rule: "The schema of machines allows the parameters of each announced capacity, so that machines with these " +
			"parameters can exist. No two capacities have the same parameters, and only the last capacity may be without " +
			"parameters.",
		Source: infrastructureContract + "discovery.proto, MachineCapacity",
		run: func(ctx context.Context, s *session, v *verdict) {
			ofProvider(func(p *provider, v *verdict) {
				if list, ok := p.capacities(v); ok {
					inspectCapacities(ctx, p, list[:min(len(list), limits.MachineCapacities)], v)
				}
			})(ctx, s, v)
		},
	},
	ofTrial(checkGone, "A request to delete something that never existed is answered with Gone.",
		"common.proto, DeletionState"),
	ofTrial(checkReady, "Each cluster, machine or pool that was requested becomes Ready.", "common.proto, Phase"),
	ofTrial(checkStates, "An answer with status Success has a phase or state. An answer with phase Failed has a reason.",
		"common.proto, Phase"),
	ofTrial(checkSame, "The same request, made again, gets the same answer, and changes nothing.", "common.proto"),
	ofTrial(checkSole, "Requests with the same external ID, even concurrent ones, never make two machines.",
		"common.proto, Subject"),
	ofTrial(checkProviderIDs, "A machine that is Ready has a provider ID with the announced prefix.", "machine.proto"),
	ofTrial(checkAddresses, "The type of each address of a machine is one that Cluster API has: Hostname, ExternalIP, "+
		"InternalIP, ExternalDNS or InternalDNS.", "common.proto, MachineAddress"),
	ofTrial(checkLists, "Lists of instances are complete: instanceCount is the number of instances, and each name "+
		"and each provider ID occurs once.", "machine_pool.proto"),
	ofTrial(checkRemove, "The machines that the request's member \"remove\" lists are deleted, and no other machines.",
		"machine_pool.proto"),
	ofTrial(checkSecrets, "Answers contain no credentials, for example in messages, conditions or outputs.",
		"common.proto, Subject"),
	ofTrial(checkAgain, "If a machine is gone after its provider ID was recorded, the answer has the phase Failed and "+
		"the reason InstanceGone, and the machine is not made again.", "machine.proto"),
	ofTrial(checkDeleted, "After a request to delete an object, the state becomes Gone and stays Gone: the object no "+
		"longer exists.", "common.proto, DeletionState"),
}

// providerIDPrefix is what the provider takes for a prefix.
var providerIDPrefix = regexp.MustCompile(`^[a-z][-a-z0-9+.]*://[^\x00-\x20\x7f]{0,245}$`)

// infrastructureContract is where the rules of infrastructure are written down.
const infrastructureContract = "proto/hookgate/infrastructure/v1alpha1/"

// ofProvider returns a run for extensions that provide infrastructure.
func ofProvider(run func(p *provider, v *verdict)) runFunc {
	return func(_ context.Context, s *session, v *verdict) {
		p := &s.provider
		switch {
		case p.first == nil || p.absent != "":
			v.skipf("%s", p.absent)
		case !p.answers():
			v.skipf("DiscoverInfrastructure does not answer: see infrastructure.discovery")
		default:
			run(p, v)
		}
	}
}

// ofTrial returns the check to which the trial adds what it finds.
func ofTrial(id, rule, source string) Check {
	return Check{
		ID: id, Level: Must, Rule: rule, Source: infrastructureContract + source,
		run: func(ctx context.Context, s *session, v *verdict) {
			t, why := s.tried(ctx)
			switch {
			case t == nil:
				v.skipf("%s", why)
			case t.found[id] == nil:
				v.skipf("the extension has no handlers to try this with")
			default:
				*v = *t.found[id]
			}
		},
	}
}

// wrongHandler returns what is wrong with a handler that the discovery of a group lists, beside others, by name.
func (s *session) wrongHandler(a announced, of hook.GroupVersionHook, seen map[string]bool) string {
	gvh, err := hook.Parse(a.RequestHook.APIVersion, a.RequestHook.Hook)
	h, known := s.catalog.Lookup(gvh)
	errs := validation.IsDNS1123Label(a.Name)
	switch {
	case len(errs) > 0:
		return fmt.Sprintf("name %q is not a DNS-1123 label: %s", a.Name, errs[0])
	case seen[a.Name]:
		return fmt.Sprintf("name %q is also the name of another handler", a.Name)
	case err != nil, !known, h.Group != of.Group, h.Singleton():
		return fmt.Sprintf("there is no hook %q that can have handlers in apiVersion %q; want apiVersion %s",
			a.RequestHook.Hook, a.RequestHook.APIVersion, of.APIVersion())
	case a.TimeoutSeconds != nil && (*a.TimeoutSeconds < 0 || *a.TimeoutSeconds > int64(limits.Timeout.Seconds())):
		return fmt.Sprintf("timeoutSeconds is %d, which is not between 0 and 30", *a.TimeoutSeconds)
	case a.ClusterAPIVersion != "" && hook.CheckClusterAPIVersion(a.ClusterAPIVersion) != nil:
		return fmt.Sprintf("cluster_api_version is %q, which is neither %q nor %q", a.ClusterAPIVersion,
			hook.ClusterAPIV1Beta1, hook.ClusterAPIV1Beta2)
	}
	return ""
}
