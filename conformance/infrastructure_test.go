// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	provisioning = infrastructurev1alpha1.Phase_PHASE_PROVISIONING
	isReady      = infrastructurev1alpha1.Phase_PHASE_READY
	isFailed     = infrastructurev1alpha1.Phase_PHASE_FAILED
	deleting     = infrastructurev1alpha1.DeletionState_DELETION_STATE_DELETING
	isGone       = infrastructurev1alpha1.DeletionState_DELETION_STATE_GONE
)

// backend is a cloud that keeps all rules until a test changes one of its fields.
type backend struct {
	discover func(out *infrastructurev1alpha1.DiscoverInfrastructureResponse)
	// answer may change an answer.
	answer func(in, out proto.Message)
	// known returns the provider ID under which the backend knows a machine, if it answers another one.
	known func(id string) string
	// forgets makes a new machine for every request that has no provider ID, and remakes one that is gone.
	forgets bool
	remakes bool
	// keeps deletes nothing, and says Gone.
	keeps bool

	mu   sync.Mutex
	made map[string][]string // provider IDs by external ID; not nil for what exists
	seen map[string]int      // requests that found it
	all  map[string]bool     // external IDs that were ever asked for
	next int
}

func newBackend() *backend {
	return &backend{made: map[string][]string{}, seen: map[string]int{}, all: map[string]bool{}}
}

var providerHooks = []string{
	"DeleteCluster", "DeleteMachine", "DeleteMachinePool", "ReconcileCluster", "ReconcileMachine", "ReconcileMachinePool",
}

func (b *backend) announces(name string) bool {
	return slices.ContainsFunc(providerHooks, func(h string) bool { return strings.EqualFold("i-"+h, name) })
}

func (b *backend) discovery() *infrastructurev1alpha1.DiscoverInfrastructureResponse {
	schema := func(text string) *hooksv1alpha1.JSON { return &hooksv1alpha1.JSON{Raw: []byte(text)} }
	out := &infrastructurev1alpha1.DiscoverInfrastructureResponse{
		Status: succeeded, ProviderIdPrefix: "acme://",
		ClusterParameters: schema(`{"type":"object","properties":{"region":{"type":"string"}}}`),
		MachineParameters: schema(`{"type":"object","required":["size"],"properties":{"size":{"type":"string"}}}`),
	}
	for i := range limits.MachineCapacities - 1 { // as many as there may be
		out.MachineCapacities = append(out.MachineCapacities, &infrastructurev1alpha1.MachineCapacity{
			Parameters: schema(fmt.Sprintf(`{"size":"s%d"}`, i)), Capacity: map[string]string{"cpu": "4", "memory": "8Gi"},
			Architecture: "amd64", OperatingSystem: "linux",
		})
	}
	out.MachineCapacities = append(out.MachineCapacities, &infrastructurev1alpha1.MachineCapacity{
		Capacity: map[string]string{"cpu": "1"}, // of all others
	})
	for _, name := range providerHooks {
		h := announce(name)
		h.Name, h.RequestHook.ApiVersion = "i-"+h.Name, "infrastructure.hookgate.dev/v1alpha1"
		out.Handlers = append(out.Handlers, h)
	}
	if b.discover != nil {
		b.discover(out)
	}
	return out
}

func (b *backend) reply(h *catalog.Hook, in proto.Message) proto.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.Singleton() {
		return b.discovery()
	}
	out := b.do(in)
	if b.answer != nil {
		b.answer(in, out)
	}
	return out
}

// make adds machines to what exists, up to n, and returns how far it is.
func (b *backend) make(id string, n int) infrastructurev1alpha1.Phase {
	b.all[id] = true
	if b.made[id] == nil {
		b.made[id], b.seen[id] = []string{}, 0
	}
	for len(b.made[id]) < n {
		b.next++
		b.made[id], b.seen[id] = append(b.made[id], fmt.Sprintf("acme://vm-%d", b.next)), 0
	}
	b.seen[id]++
	if b.seen[id] < 3 {
		return provisioning
	}
	return isReady
}

func (b *backend) do(in proto.Message) proto.Message {
	switch in := in.(type) {
	case *infrastructurev1alpha1.ReconcileClusterRequest:
		out := &infrastructurev1alpha1.ReconcileClusterResponse{Status: succeeded, Phase: b.make(in.GetSubject().GetExternalId(), 0)}
		if out.GetPhase() == isReady {
			out.ControlPlaneEndpoint = &infrastructurev1alpha1.Endpoint{Host: "api.example.com", Port: 6443}
			out.Outputs = &hooksv1alpha1.JSON{Raw: []byte(`{"network":"n1"}`)}
		}
		out.Message = fmt.Sprintf("asked %d times", b.seen[in.GetSubject().GetExternalId()]) // for people, and may change
		return out
	case *infrastructurev1alpha1.ReconcileMachineRequest:
		return b.machine(in)
	case *infrastructurev1alpha1.ReconcileMachinePoolRequest:
		return b.machinePool(in)
	case *infrastructurev1alpha1.DeleteClusterRequest:
		return &infrastructurev1alpha1.DeleteClusterResponse{Status: succeeded, State: b.remove(in.GetSubject().GetExternalId())}
	case *infrastructurev1alpha1.DeleteMachineRequest:
		return &infrastructurev1alpha1.DeleteMachineResponse{Status: succeeded, State: b.remove(in.GetSubject().GetExternalId())}
	case *infrastructurev1alpha1.DeleteMachinePoolRequest:
		return &infrastructurev1alpha1.DeleteMachinePoolResponse{Status: succeeded, State: b.remove(in.GetSubject().GetExternalId())}
	}
	return nil
}

func (b *backend) machine(in *infrastructurev1alpha1.ReconcileMachineRequest) proto.Message {
	id := in.GetSubject().GetExternalId()
	out := &infrastructurev1alpha1.ReconcileMachineResponse{Status: succeeded}
	if in.GetProviderId() != "" && b.made[id] == nil && !b.remakes {
		out.Phase, out.Reason = isFailed, "InstanceGone"
		return out
	}
	n := 1
	if b.forgets && in.GetProviderId() == "" {
		n = len(b.made[id]) + 1
	}
	out.Phase = b.make(id, n)
	if b.forgets && len(b.made[id]) > 6 {
		out.Phase = isReady
	}
	out.ProviderId = b.made[id][len(b.made[id])-1]
	out.Addresses = []*infrastructurev1alpha1.MachineAddress{{Type: "InternalIP", Address: "10.0.0.1"}}
	return out
}

func (b *backend) machinePool(in *infrastructurev1alpha1.ReconcileMachinePoolRequest) proto.Message {
	id := in.GetSubject().GetExternalId()
	removed := slices.Clone(in.GetRemove())
	for i := range removed {
		if b.known != nil {
			removed[i] = b.known(removed[i])
		}
	}
	b.made[id] = slices.DeleteFunc(b.made[id], func(m string) bool { return slices.Contains(removed, m) })
	out := &infrastructurev1alpha1.ReconcileMachinePoolResponse{Status: succeeded, Phase: b.make(id, int(in.GetReplicas()))}
	for _, m := range b.made[id] {
		out.Instances = append(out.Instances, &infrastructurev1alpha1.Instance{
			Name: strings.TrimPrefix(m, "acme://"), ProviderId: m, Phase: out.GetPhase(), Revision: in.GetRevision(),
		})
	}
	out.InstanceCount = new(int32(len(out.GetInstances())))
	return out
}

func (b *backend) remove(id string) infrastructurev1alpha1.DeletionState {
	if _, ok := b.made[id]; !ok || b.keeps {
		return isGone
	}
	delete(b.made, id)
	return deleting
}

// left returns the external IDs of what exists.
func (b *backend) left() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.made))
}

// secret is a credential with characters that JSON escapes.
const secret = `s3cr3t"<token>`

func parametersOf() *Infrastructure {
	return &Infrastructure{
		Cluster: json.RawMessage(`{"region":"r"}`), Machine: json.RawMessage(`{"size":"s"}`),
		Credentials: map[string]string{"token": secret, "user": "x"}, WaitSeconds: 60,
	}
}

// TestGoodProvider checks that a provider that keeps all rules passes all checks of infrastructure, and that nothing of
// the trial is left. Without parameters, nothing is made.
func TestGoodProvider(t *testing.T) {
	for _, p := range []Protocol{REST, GRPC} {
		for _, asked := range []bool{true, false} {
			t.Run(fmt.Sprint(p, " ", asked), func(t *testing.T) {
				t.Parallel()
				s := newStub()
				s.backend = newBackend()
				options := Options{Skip: []string{"load"}} // TestGoodExtensions has its large requests
				if asked {
					options.Infrastructure = parametersOf()
				}
				report, err := Run(t.Context(), s.start(t, p), options)
				if err != nil {
					t.Fatal(err)
				}
				if !report.Conforms(true) {
					t.Error("the provider does not conform")
				}
				if n := len(report.Handlers); n != len(s.handlers)+len(providerHooks) {
					t.Errorf("%d handlers, want %d and %d of infrastructure", n, len(s.handlers), len(providerHooks))
				}
				for _, r := range report.Results {
					if !strings.HasPrefix(r.ID, "infrastructure.") {
						continue
					}
					want := Pass
					if !asked && slices.Index(infrastructureIDs(), r.ID) >= 7 {
						want = Skip
					}
					if r.Status != want {
						t.Errorf("%s: got %s (%s) %+v, want %s", r.ID, r.Status, r.Reason, r.Findings, want)
					}
				}
				if left := s.backend.left(); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				if made := len(s.backend.all) > 0; made != asked {
					t.Errorf("infrastructure was made: %t, want %t", made, asked)
				}
				for id := range s.backend.all {
					if !strings.HasPrefix(id, "hookgate-check-") || len(id) > 63 {
						t.Errorf("external ID %q", id)
					}
				}
			})
		}
	}
}

func infrastructureIDs() []string {
	var ids []string
	for _, c := range infrastructureChecks {
		ids = append(ids, c.ID)
	}
	return ids
}

// TestProviderWithoutHooksOfClusterAPI checks that an extension may have infrastructure alone, and machines alone.
func TestProviderWithoutHooksOfClusterAPI(t *testing.T) {
	s := newStub()
	s.backend, s.handlers = newBackend(), nil
	s.noSuch = map[string]bool{}
	for _, h := range hooks.Hubs() {
		if h.Group == hook.Group {
			s.noSuch[serviceOf(h)] = true
		}
	}
	s.backend.discover = func(out *infrastructurev1alpha1.DiscoverInfrastructureResponse) {
		out.Handlers = slices.DeleteFunc(out.Handlers, func(h *hooksv1alpha1.ExtensionHandler) bool { return !strings.HasSuffix(h.GetName(), "machine") })
	}
	report, err := Run(t.Context(), s.start(t, GRPC), Options{Infrastructure: parametersOf(), Skip: []string{"load"}})
	if err != nil {
		t.Fatal(err)
	}
	if !report.Conforms(false) {
		t.Errorf("the provider does not conform: %+v", report.Results)
	}
	var printed strings.Builder
	if err := report.WriteTable(&printed, false); err != nil || !strings.Contains(printed.String(), ", 2 handlers: ") {
		t.Errorf("the report does not have both handlers, %v: %s", err, printed.String())
	}
	for _, r := range report.Results {
		want := map[string]Status{"infrastructure.lists": Skip, "infrastructure.remove": Skip, "infrastructure.again": Pass, "discovery.answers": Skip}[r.ID]
		if want != "" && r.Status != want {
			t.Errorf("%s: got %s %s %+v, want %s", r.ID, r.Status, r.Reason, r.Findings, want)
		}
	}
}

// TestInterruptedTrialIsCleanedUp checks that nothing is left when a run ends early.
func TestInterruptedTrialIsCleanedUp(t *testing.T) {
	s := newStub()
	s.backend = newBackend()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	s.backend.answer = func(_, out proto.Message) {
		if a, ok := out.(*infrastructurev1alpha1.ReconcileMachinePoolResponse); ok && len(a.GetInstances()) == 2 {
			cancel(why)
		}
	}
	if _, err := Run(ctx, s.start(t, REST), Options{Infrastructure: parametersOf(), Only: []string{"infrastructure"}}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if left := s.backend.left(); len(left) > 0 || len(s.backend.all) != 3 {
		t.Errorf("left behind: %v of %v", left, s.backend.all)
	}
}

func TestWrongParametersOfInfrastructure(t *testing.T) {
	_, err := Run(t.Context(), Target{URL: "grpc://127.0.0.1:1"}, Options{Infrastructure: &Infrastructure{Machine: json.RawMessage(`[1]`)}})
	var target *TargetError
	if !errors.As(err, &target) || !strings.Contains(err.Error(), "the parameters of infrastructure: machine: want an object") {
		t.Errorf("got %v", err)
	}
}

// TestProviderThatLooksInTheBackground checks that a provider may say Deleting before it knows that there is nothing, and
// that it need not answer while it cannot tell the state.
func TestProviderThatLooksInTheBackground(t *testing.T) {
	s := newStub()
	s.backend = newBackend()
	looked := map[string]bool{}
	s.backend.answer = func(in, out proto.Message) {
		if a, ok := out.(deleteResponse); ok && !looked[in.(*infrastructurev1alpha1.DeleteMachineRequest).GetSubject().GetExternalId()] {
			looked[in.(*infrastructurev1alpha1.DeleteMachineRequest).GetSubject().GetExternalId()], a.State = true, deleting
		}
	}
	s.serve = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
		if strings.Contains(r.URL.Path, "/i-") && s.count()%2 == 0 {
			http.Error(w, "the cloud asks for patience", http.StatusServiceUnavailable)
			return
		}
		next(w, r)
	}
	report, err := Run(t.Context(), s.start(t, REST), Options{Infrastructure: parametersOf(), Only: []string{"infrastructure"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Status != Pass {
			t.Errorf("%s: got %s %s %+v", r.ID, r.Status, r.Reason, r.Findings)
		}
	}
}

// altering makes answers of one type be changed.
func altering[Response proto.Message](change func(out Response)) func(*backend) {
	return func(b *backend) {
		b.answer = func(_, out proto.Message) {
			if a, ok := out.(Response); ok {
				change(a)
			}
		}
	}
}

func announcing(change func(out *infrastructurev1alpha1.DiscoverInfrastructureResponse)) func(*backend) {
	return func(b *backend) { b.discover = change }
}

type (
	discoverResponse = *infrastructurev1alpha1.DiscoverInfrastructureResponse
	clusterResponse  = *infrastructurev1alpha1.ReconcileClusterResponse
	machineResponse  = *infrastructurev1alpha1.ReconcileMachineResponse
	poolResponse     = *infrastructurev1alpha1.ReconcileMachinePoolResponse
	deleteResponse   = *infrastructurev1alpha1.DeleteMachineResponse
)

// brokenProviders has at least one row for each check of infrastructure.
var brokenProviders = []struct {
	check  string
	how    string
	breaks func(*backend)
	want   string
}{
	{"infrastructure.discovery", "fails", announcing(func(out discoverResponse) { out.Status = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE }), "there is no answer with status Success"},
	{"infrastructure.discovery", "lists a hook of Cluster API", announcing(func(out discoverResponse) { out.Handlers[0].RequestHook = announce("BeforeClusterCreate").RequestHook }), `there is no hook "BeforeClusterCreate"`},
	{"infrastructure.discovery", "has a name that another handler has", announcing(func(out discoverResponse) { out.Handlers[0].Name = "beforeclustercreate" }), "is also the name of another handler"},
	{"infrastructure.discovery", "wants 31 seconds", announcing(func(out discoverResponse) { out.Handlers[0].TimeoutSeconds = proto.Int32(31) }), "timeoutSeconds is 31"},
	{"infrastructure.discovery", "wants less than none", announcing(func(out discoverResponse) { out.Handlers[0].TimeoutSeconds = proto.Int32(-1) }), "timeoutSeconds is -1"},
	{"infrastructure.discovery", "has a name twice", announcing(func(out discoverResponse) { out.Handlers[1].Name = out.Handlers[0].GetName() }), "is also the name of another handler"},
	{"infrastructure.discovery", "has too many", announcing(func(out discoverResponse) {
		for i := range limits.Handlers {
			h := proto.CloneOf(out.GetHandlers()[0])
			h.Name = fmt.Sprintf("more-%d", i)
			out.Handlers = append(out.Handlers, h)
		}
	}), "which is more than 512"},
	{"infrastructure.discovery", "has a name with a dot", announcing(func(out discoverResponse) { out.Handlers[0].Name = "a.b" }), `name "a.b" is not a DNS-1123 label`},
	{"infrastructure.failure-policies", "wants failures to be ignored", announcing(func(out discoverResponse) {
		out.Handlers[1].FailurePolicy = hooksv1alpha1.FailurePolicy_FAILURE_POLICY_IGNORE
	}), `handlers[1]: failurePolicy is "Ignore"`},
	{"infrastructure.pairs", "never deletes clusters", announcing(func(out discoverResponse) { out.Handlers = out.Handlers[1:] }), "there is only one of ReconcileCluster and DeleteCluster"},
	{"infrastructure.pairs", "never deletes machines", announcing(func(out discoverResponse) { out.Handlers = slices.Delete(out.Handlers, 1, 2) }), "there is only one of ReconcileMachine and DeleteMachine"},
	{"infrastructure.pairs", "makes no pools", announcing(func(out discoverResponse) { out.Handlers = out.Handlers[:5] }), "there is only one of ReconcileMachinePool and DeleteMachinePool"},
	{"infrastructure.pairs", "makes no machines", announcing(func(out discoverResponse) {
		out.Handlers = []*hooksv1alpha1.ExtensionHandler{out.Handlers[0], out.Handlers[3]}
	}), "no handler that makes machines"},
	{"infrastructure.prefix", "has no prefix", announcing(func(out discoverResponse) { out.ProviderIdPrefix = "" }), `providerIdPrefix is ""`},
	{"infrastructure.schemas", "has a schema that is not structural", announcing(func(out discoverResponse) {
		out.MachineParameters.Raw = []byte(`{"type":"object","properties":{"a":{}}}`)
	}), "machineParameters: "},
	{"infrastructure.schemas", "has a schema of a string", announcing(func(out discoverResponse) { out.ClusterParameters.Raw = []byte(`{"type":"string"}`) }), "clusterParameters: "},
	{"infrastructure.schemas", "has a schema of pools that is not structural", announcing(func(out discoverResponse) {
		out.MachinePoolParameters = &hooksv1alpha1.JSON{Raw: []byte(`{"type":"object","properties":{"a":{}}}`)}
	}), "machinePoolParameters: "},
	{"infrastructure.capacities", "announces one too many", announcing(func(out discoverResponse) {
		out.MachineCapacities = append(out.MachineCapacities, out.MachineCapacities[0])
	}), "has 501 entries, but at most 500 are allowed"},
	{"infrastructure.capacities", "has a quantity with a unit of its own", announcing(func(out discoverResponse) {
		out.MachineCapacities[3].Capacity["memory"] = "8GB"
	}), `machineCapacities[3].capacity[memory]: "8GB" is not a quantity`},
	{"infrastructure.capacities", "says nothing of a machine", announcing(func(out discoverResponse) {
		out.MachineCapacities[0] = &infrastructurev1alpha1.MachineCapacity{Parameters: out.MachineCapacities[0].Parameters}
	}), "machineCapacities[0]: must have capacity, architecture or operatingSystem"},
	{"infrastructure.capacity-parameters", "has parameters that no machine has", announcing(func(out discoverResponse) {
		out.MachineCapacities[2].Parameters = &hooksv1alpha1.JSON{Raw: []byte(`{"flavor":"large"}`)}
	}), "machineCapacities[2].parameters.flavor"},
	{"infrastructure.capacity-parameters", "has the same parameters twice", announcing(func(out discoverResponse) {
		out.MachineCapacities[9].Parameters = &hooksv1alpha1.JSON{Raw: []byte(`{ "size": "s4" }`)}
	}), "machineCapacities[9]: machineCapacities[4] has the same parameters"},
	{"infrastructure.capacity-parameters", "begins with one for all machines", announcing(func(out discoverResponse) {
		out.MachineCapacities[0].Parameters = nil
	}), "machineCapacities[1]: machineCapacities[0] has no parameters"},
	{"infrastructure.gone", "never finds nothing", altering(func(out deleteResponse) { out.State = deleting }), "DeleteMachine of something that never existed does not answer Gone"},
	{"infrastructure.gone", "never finds no cluster", altering(func(out *infrastructurev1alpha1.DeleteClusterResponse) { out.State = deleting }), "DeleteCluster of something that never existed does not answer Gone"},
	{"infrastructure.gone", "never finds no pool", altering(func(out *infrastructurev1alpha1.DeleteMachinePoolResponse) { out.State = deleting }), "DeleteMachinePool of something that never existed does not answer Gone"},
	{"infrastructure.ready", "is never ready", altering(func(out clusterResponse) { out.Phase = provisioning }), "ReconcileCluster is not Ready after 1s"},
	{"infrastructure.ready", "has machines that are never ready", altering(func(out machineResponse) { out.Phase = provisioning }), "ReconcileMachine is not Ready after 1s"},
	{"infrastructure.ready", "has pools that are never ready", altering(func(out poolResponse) { out.Phase = provisioning }), "ReconcileMachinePool is not Ready after 1s"},
	{"infrastructure.states", "leaves out the phase", altering(func(out machineResponse) { out.Phase = 0 }), "there is no phase"},
	{"infrastructure.states", "leaves out the state", altering(func(out deleteResponse) { out.State = 0 }), "there is no state"},
	{"infrastructure.states", "fails without a reason", altering(func(out machineResponse) { out.Phase, out.Reason = isFailed, "" }), "there is no reason"},
	{"infrastructure.same", "has another endpoint each time", func(b *backend) {
		n := int32(0)
		altering(func(out clusterResponse) {
			n++
			out.ControlPlaneEndpoint = &infrastructurev1alpha1.Endpoint{Host: "a", Port: n}
		})(b)
	}, "the answer to the same request differs from the one before"},
	{"infrastructure.same", "has another address of a machine each time", func(b *backend) {
		n := 0
		altering(func(out machineResponse) {
			n++
			for _, a := range out.GetAddresses() {
				a.Address = fmt.Sprint("10.0.0.", n)
			}
		})(b)
	}, "the answer to the same request differs from the one before"},
	{"infrastructure.same", "moves the machines of a pool each time", func(b *backend) {
		n := 0
		altering(func(out poolResponse) {
			n++
			for _, i := range out.GetInstances() {
				i.FailureDomain = strconv.Itoa(n)
			}
		})(b)
	}, "the answer to the same request differs from the one before"},
	{"infrastructure.sole", "makes a machine for each request", func(b *backend) { b.forgets = true }, "requests with one external ID made two machines"},
	{"infrastructure.provider-ids", "has no provider ID", altering(func(out machineResponse) { out.ProviderId = "" }), "has no provider ID"},
	{"infrastructure.provider-ids", "has a prefix alone", altering(func(out machineResponse) { out.ProviderId = "acme://" }), "is the prefix alone"},
	{"infrastructure.prefix", "has a prefix in upper case", announcing(func(out discoverResponse) { out.ProviderIdPrefix = "ACME://" }), `providerIdPrefix is "ACME://"`},
	{"infrastructure.provider-ids", "has another prefix", altering(func(out machineResponse) { out.ProviderId = "other://1" }), `"other://1" does not begin with "acme://"`},
	{"infrastructure.provider-ids", "has a space in it", altering(func(out machineResponse) { out.ProviderId += " 1" }), "or has spaces"},
	{"infrastructure.provider-ids", "has another prefix in pools", func(b *backend) {
		altering(func(out poolResponse) {
			for _, i := range out.GetInstances() {
				i.ProviderId = "other:" + strings.TrimPrefix(i.GetProviderId(), "acme:")
			}
		})(b)
		b.known = func(id string) string { return "acme:" + strings.TrimPrefix(id, "other:") }
	}, `does not begin with "acme://"`},
	{"infrastructure.lists", "has the same name for all", altering(func(out poolResponse) {
		for _, i := range out.GetInstances() {
			i.Name = "vm"
		}
	}), "two instances have the name vm"},
	{"infrastructure.lists", "is ready with half of its machines", altering(func(out poolResponse) {
		out.Instances = out.Instances[:min(1, len(out.Instances))]
		out.InstanceCount = new(int32(len(out.GetInstances())))
	}), "the pool is Ready, but has 1 machines with a provider ID, not 2"},
	{"infrastructure.lists", "leaves out the count", altering(func(out poolResponse) { out.InstanceCount = nil }), "there is no instanceCount"},
	{"infrastructure.lists", "cuts the list", altering(func(out poolResponse) { out.Instances = out.Instances[:min(1, len(out.Instances))] }), "instanceCount is 2, but there are 1 instances"},
	{"infrastructure.lists", "lists a machine twice", altering(func(out poolResponse) {
		for _, i := range out.GetInstances() {
			i.ProviderId = "acme://vm-1"
		}
	}), "two instances have the provider ID acme://vm-1"},
	{"infrastructure.remove", "removes nothing", func(b *backend) {
		first := map[string]*infrastructurev1alpha1.Instance{}
		altering(func(out poolResponse) {
			for _, i := range out.GetInstances() {
				first[i.GetName()] = i
			}
			out.Instances = slices.SortedFunc(maps.Values(first), func(a, b *infrastructurev1alpha1.Instance) int { return strings.Compare(a.GetName(), b.GetName()) })
			out.InstanceCount = new(int32(len(out.GetInstances())))
		})(b)
	}, "which was to be removed, is still there"},
	{"infrastructure.remove", "removes all", func(b *backend) {
		b.answer = func(in, out proto.Message) {
			if r, ok := in.(*infrastructurev1alpha1.ReconcileMachinePoolRequest); ok && len(r.GetRemove()) > 0 {
				a := out.(poolResponse)
				a.Instances, a.InstanceCount = nil, new(int32(0))
			}
		}
	}, "was to be removed, but the machines are now []"},
	{"infrastructure.secrets", "repeats them when it deletes", altering(func(out deleteResponse) { out.Message = "login with " + secret }), `the answer has the value of the credential "token"`},
	{"infrastructure.secrets", "repeats its credentials in a message", altering(func(out machineResponse) { out.Message = "login with " + secret + " failed" }), `the answer has the value of the credential "token"`},
	{"infrastructure.secrets", "puts its credentials into outputs", altering(func(out clusterResponse) {
		text, _ := json.Marshal(map[string]string{"t": secret})
		out.Outputs = &hooksv1alpha1.JSON{Raw: text}
	}), `the answer has the value of the credential "token"`},
	{"infrastructure.addresses", "writes a type in lower case", altering(func(out machineResponse) {
		out.Addresses = []*infrastructurev1alpha1.MachineAddress{{Type: "internalIP", Address: "10.0.0.1"}}
	}), `the type of address "10.0.0.1" is "internalIP"`},
	{"infrastructure.addresses", "has a type of its own in pools", altering(func(out poolResponse) {
		for _, i := range out.GetInstances() {
			i.Addresses = []*infrastructurev1alpha1.MachineAddress{{Type: "IP", Address: "10.0.0.1"}}
		}
	}), `the type of address "10.0.0.1" is "IP"`},
	{"infrastructure.deleted", "finds again what was gone", func(b *backend) {
		asked := 0
		altering(func(out *infrastructurev1alpha1.DeleteClusterResponse) {
			if asked++; asked > 3 { // of what never was, of the cluster, and until it is gone
				out.State = deleting
			}
		})(b)
	}, "an object that was Gone exists again"},
	{"infrastructure.deleted", "says Gone and deletes nothing", func(b *backend) { b.keeps = true }, "is said to be Gone, but is still Ready"},
	{"infrastructure.again", "makes a machine again that is gone", func(b *backend) { b.remakes = true }, "is gone, but is not Failed with the reason InstanceGone"},
	{"infrastructure.deleted", "is never gone", func(b *backend) {
		altering(func(out *infrastructurev1alpha1.DeleteClusterResponse) { out.State = deleting })(b)
	}, "is not Gone after 1s, and may be left behind"},
}

// waitedFor lists the broken providers for which the trial waits until it gives up.
var waitedFor = []string{
	"leaves out the state", "fails without a reason", "leaves out the phase", "removes nothing",
	"lists a machine twice",
}

// TestBrokenProviders shows that each check of infrastructure can fail, for the reason that it names, and that reports
// have no credentials.
func TestBrokenProviders(t *testing.T) {
	for i, b := range brokenProviders {
		protocols := []Protocol{REST, GRPC}
		if slices.Index(infrastructureIDs(), b.check) >= 5 {
			protocols = protocols[i%2:][:1] // trials take a second, and use the protocols in the same way
		}
		for _, p := range protocols {
			t.Run(b.check+"/"+string(p)+"/"+b.how, func(t *testing.T) {
				t.Parallel()
				s := newStub()
				s.backend = newBackend()
				b.breaks(s.backend)
				options := Options{Only: []string{b.check}, Infrastructure: parametersOf()}
				switch {
				case strings.Contains(b.want, "1s"), b.check == checkGone:
					options.Infrastructure.WaitSeconds = 1
				case slices.Contains(waitedFor, b.how):
					options.Infrastructure.WaitSeconds = 5
				}
				report, err := Run(t.Context(), s.start(t, p), options)
				if err != nil {
					t.Fatal(err)
				}
				r := report.Results[0]
				if r.Status != Fail {
					t.Fatalf("a provider that %s: got %+v, want it to fail", b.how, r)
				}
				text, err := json.Marshal(report)
				if err != nil || strings.Contains(string(text), "s3cr3t") {
					t.Errorf("the report has a credential: %s", text)
				}
				for _, f := range r.Findings {
					if strings.Contains(f.Problem, b.want) {
						return
					}
				}
				t.Errorf("a provider that %s: got %+v, want %q", b.how, r.Findings, b.want)
			})
		}
	}
}

// TestHandlersOfInfrastructureAreNotOfClusterAPI checks that Discovery must not list them, and that they are not called.
func TestHandlersOfInfrastructureAreNotOfClusterAPI(t *testing.T) {
	for _, p := range []Protocol{REST, GRPC} {
		s := newStub()
		s.backend = newBackend()
		s.discover = func(_ int, out *hooksv1alpha1.DiscoveryResponse) {
			out.Handlers = append(out.Handlers, s.backend.discovery().GetHandlers()[4])
		}
		report, err := Run(t.Context(), s.start(t, p), Options{Only: []string{"discovery.hooks", "load.concurrent", "malformed", "idempotence"}})
		if err != nil {
			t.Fatal(err)
		}
		if r := report.Results[0]; r.Status != Fail || !strings.Contains(r.Findings[0].Problem, `there is no hook "ReconcileMachine"`) {
			t.Errorf("%s: %+v", p, r)
		}
		if len(s.backend.all) > 0 {
			t.Errorf("%s: %v was made", p, s.backend.all)
		}
	}
}
