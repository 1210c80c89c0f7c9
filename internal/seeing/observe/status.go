// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Namespaces knows the labels of namespaces, and reports whether they are certain.
type Namespaces interface {
	NamespaceLabels(name string) (labels map[string]string, known bool)
}

// Reporter describes a gateway, its extensions and the Clusters that wait for them, as far as this process has seen.
// All fields but Objects, Notices, HasCluster, Certificates and ClusterGone are required. It is safe for concurrent
// use.
type Reporter struct {
	ID, Version string
	Started     time.Time
	Catalog     *catalog.Catalog
	Registry    registry.Snapshots
	Observer    *Observer
	Namespaces  Namespaces
	// Objects puts the objects of Hookgate's own kinds into g, which must not be changed there. It may be nil.
	Objects func(g *status.Gateway)
	// Notices may be nil.
	Notices func() []status.Notice
	// HasCluster reports whether a Cluster is known to exist, besides those that calls are about. It may be nil.
	HasCluster func(namespace, name string) bool
	// Certificates returns the certificates that calls of an extension depend on. It may be nil.
	Certificates func(cc registry.ClientConfig) extension.Certificates
	// ClusterGone reports whether a Cluster is known not to exist, so that it does not wait. It may be nil.
	ClusterGone func(namespace, name string) bool
}

// Gateway returns the status of the gateway now, without the failures and the points of its extensions.
func (r *Reporter) Gateway() *status.Gateway {
	now, snapshot := time.Now(), r.Registry.Snapshot()
	g := r.gateway(now, snapshot)
	discoveries := r.Observer.discoveries.Last()
	inChains := chainsOf(snapshot)
	for _, registration := range snapshot.Registrations() {
		if registration.InProcess == nil {
			g.Extensions = append(g.Extensions, r.extension(now, snapshot, registration, discoveries, inChains))
		}
	}
	g.Extensions = append(g.Extensions, r.unregistered(now, snapshot, discoveries)...)
	slices.SortFunc(g.Extensions, func(a, b status.Extension) int { return strings.Compare(a.Name, b.Name) })
	if n := expiringNotice(g.Extensions); n.Text != "" {
		g.Notices = append(g.Notices, n)
	}
	if r.Objects != nil {
		r.Objects(g)
	}
	g.Rollouts, g.MissedRollouts = firstRollouts(g.Rollouts)
	r.seeObjects(now, snapshot, g)
	return g
}

// Extension returns the status of the gateway with one extension and all that is known of it, and reports whether there
// is an ExtensionConfig of that name.
func (r *Reporter) Extension(name string) (*status.Gateway, bool) {
	now, snapshot := time.Now(), r.Registry.Snapshot()
	g, discoveries := r.gateway(now, snapshot), r.Observer.discoveries.Last()
	g.Holds = slices.DeleteFunc(g.Holds, func(h status.Hold) bool {
		e, ok := snapshot.Registered(h.Handler)
		return !ok || e.Registration.Name != name
	})
	g.Chains = r.chains(now, snapshot, hasSteps(slices.Clone(r.listed().Chains), name))
	registration, ok := snapshot.Registration(name)
	if !ok || registration.InProcess != nil {
		others := r.unregistered(now, snapshot, discoveries)
		i := slices.IndexFunc(others, func(x status.Extension) bool { return x.Name == name })
		if i >= 0 {
			g.Extensions = append(g.Extensions, others[i])
		}
		return g, i >= 0
	}
	x := r.extension(now, snapshot, registration, discoveries, chainsOf(snapshot))
	x.Failures = r.failuresOf(name)
	for i := range x.Handlers {
		of := r.Observer.handlers.Of(x.Handlers[i].Name, now)
		x.Handlers[i].Calls.Points = points(&of.Calls)
	}
	g.Extensions = append(g.Extensions, x)
	return g, true
}

// failuresOf returns the last failures of the handlers of a registration.
func (r *Reporter) failuresOf(name string) (failures []status.Failure) {
	s := r.Observer.extensions.Known(name)
	if s == nil {
		return nil
	}
	for _, f := range s.Failures.List() {
		failures = append(failures, status.Failure{
			At: f.At, CallID: f.CallID, Hook: f.Hook, Handler: f.Handler, Outcome: f.Outcome.String(), Kind: f.Kind,
			Message: f.Message, Took: status.InSeconds(f.Took), Times: f.Times,
		})
	}
	return failures
}

func (r *Reporter) gateway(now time.Time, snapshot *registry.Snapshot) *status.Gateway {
	g := &status.Gateway{
		ID: r.ID, Version: r.Version, Started: r.Started, Now: now,
		Window: status.InSeconds(activity.Slot * activity.Slots), Extensions: []status.Extension{}, Holds: []status.Hold{},
	}
	if !snapshot.Ready() {
		g.Unready = snapshot.Unready()
	}
	holds, missed := r.holds(now, snapshot)
	for _, h := range holds {
		message := h.Message
		if h.Object != "" {
			message = h.Object + ": " + message
		}
		g.Holds = append(g.Holds, status.Hold{
			Namespace: h.Namespace, Cluster: h.Cluster, Hook: h.Hook, Handler: h.Handler, Object: h.Object, Kind: h.Kind,
			Message: message, RetryAfter: status.InSeconds(h.RetryAfter), Since: h.Since, Last: h.Last,
		})
	}
	g.MissedHolds, g.Notices = missed, append(unreadableManifests(snapshot), r.severalOffered(snapshot)...)
	if r.Notices != nil {
		for _, n := range r.Notices() {
			if n.Text != "" {
				g.Notices = append(g.Notices, n)
			}
		}
	}
	return g
}

// holds returns the Clusters that wait, but for those that are gone and those of handlers and chains that are, and how
// many there was no room for.
func (r *Reporter) holds(now time.Time, snapshot *registry.Snapshot) (holds []activity.Hold, missed uint64) {
	holds, missed = r.Observer.holds.List(now)
	return slices.DeleteFunc(holds, func(h activity.Hold) bool {
		_, handles := snapshot.Registered(h.Handler)
		_, chains := snapshot.Chain(h.Handler)
		return !handles && !chains || r.ClusterGone != nil && r.ClusterGone(h.Namespace, h.Cluster)
	}), missed
}

// released returns the last answers that let Clusters go on.
func (r *Reporter) released() (all []status.Release) {
	for w, at := range r.Observer.holds.Released() {
		all = append(all, status.Release{
			Namespace: w.Namespace, Cluster: w.Cluster, Hook: w.Hook, Handler: w.Handler, Object: w.Object, At: at,
		})
	}
	return all
}

func discoveryOf(d activity.Discovery) *status.Discovery {
	if d.At.IsZero() {
		return nil
	}
	return &status.Discovery{At: d.At, Since: d.Since, Outcome: d.Outcome, Error: d.Message}
}

// timeOf returns nil for the zero time.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (r *Reporter) extension(
	now time.Time, snapshot *registry.Snapshot, registration *registry.Registration,
	discoveries map[string]activity.Discovery, inChains map[string][]string,
) status.Extension {
	d := discoveries[registration.Name]
	x := status.Extension{
		Name: registration.Name, URL: registration.ClientConfig.URL, Protocol: protocolName(registration),
		Discovery: discoveryOf(d), Stale: d.Message != "", HealthUnchecked: d.HealthUnchecked,
		Circuit: status.Circuit{State: circuit.Closed.String()}, Handlers: []status.Handler{},
	}
	x.Withheld, x.Rollout = withheld(snapshot, registration.Name), memberOf(snapshot, registration.Name)
	if p := registration.Pending; p != nil {
		x.Pending = &status.Pending{URL: p.URL, Protocol: nameOf(p.Protocol), Since: p.Since}
	}
	if s := registration.NamespaceSelector; s != nil && !s.Empty() {
		x.Selector = s.String()
	}
	e := r.evidence(registration.Name, d)
	var calls activity.Calls
	lost, misspelt := r.Observer.losses.Of(registration.Name), r.Observer.misspelt.Of(registration.Name)
	x.Misspelt = misspelt[""]
	for _, entry := range snapshot.HandlersOf(registration.Name) {
		of := r.Observer.handlers.Of(entry.Name, now)
		calls.Add(&of.Calls)
		e.handlers = append(e.handlers, r.handlerEvidence(entry, of.Seen))
		h := r.handler(entry, &of, lost[entry.Handler.Name])
		h.OfferedAs, h.Collision = r.offeredAs(snapshot, entry)
		h.Chains = inChains[entry.Name]
		h.Misspelt = misspelt[entry.Handler.Name]
		x.Handlers = append(x.Handlers, h)
		l := extensionstate.LimitsOf(entry)
		x.Limits = status.Limits{InFlight: l.MaxInFlight, Waiting: l.MaxWaiting}
	}
	x.Calls = callsOf(&calls)
	x.Calls.Points = points(&calls)
	for i, v := range r.judge(&x, &e) {
		x.Handlers[i].State, x.Handlers[i].Error = v.state, v.reason
	}
	r.certify(&x, registration.ClientConfig, now)
	return x
}

// evidence returns what is known of an extension, without its handlers.
func (r *Reporter) evidence(name string, d activity.Discovery) evidence {
	e := evidence{server: r.Observer.servers.Of(name), discovery: d}
	if s := r.Observer.extensions.Known(name); s != nil {
		e.circuit = s.Circuit.Status()
	}
	return e
}

func (r *Reporter) handlerEvidence(e *registry.Entry, seen activity.Seen) handlerEvidence {
	h := handlerEvidence{name: e.Name, timeout: e.Handler.Timeout, seen: seen}
	if s := r.Observer.extensions.Known(e.Registration.Name); s != nil {
		h.circuit = s.HandlerCircuit(e.Name)
	}
	return h
}

// judge sets the state of an extension, and returns the verdicts on its handlers.
func (r *Reporter) judge(x *status.Extension, e *evidence) []verdict {
	v, handlers := judge(e)
	x.State, x.Since, x.Error, x.LastSuccess = v.state, timeOf(v.since), v.reason, timeOf(e.server.Up)
	if s := r.Observer.extensions.Known(x.Name); s != nil {
		gate := s.Gate.Status()
		x.InFlight, x.Waiting = gate.InFlight, gate.Waiting
		x.Circuit = circuitStatus(e.circuit)
	}
	return handlers
}

func circuitStatus(c circuit.Status) status.Circuit {
	s := status.Circuit{State: c.State.String(), Since: timeOf(c.Since), Opened: c.Entered[circuit.Open]}
	if c.State != circuit.Closed {
		s.Kind = c.Kind.String()
	}
	return s
}

func protocolName(r *registry.Registration) string { return nameOf(r.ClientConfig.Protocol) }

func nameOf(p registry.Protocol) string {
	if p == registry.GRPC {
		return "gRPC"
	}
	return "REST"
}

func (r *Reporter) handler(e *registry.Entry, of *activity.Handler, lost []string) status.Handler {
	h := status.Handler{
		Name: e.Name, Hook: e.Handler.Hook.Hook, APIVersion: e.Handler.Hook.APIVersion(),
		Timeout: status.InSeconds(e.Handler.Timeout), FailurePolicy: string(e.Handler.FailurePolicy),
		Objects: e.Handler.ClusterAPIVersion, LastSuccess: timeOf(of.LastSuccess), Calls: callsOf(&of.Calls),
		Lost: lost,
	}
	if l := e.Registration.InProcess; l != nil {
		h.Kind = l.Kind()
		h.Conditional = e.Registration.Selection != nil
	} else if x := r.Observer.extensions.Known(e.Registration.Name); x != nil {
		if c := x.HandlerCircuit(e.Name); c.Entered[circuit.Open] > 0 {
			s := circuitStatus(c)
			h.Circuit = &s
		}
		h.RefusedClusters = x.RefusedClusters(e.Name)
	}
	if p := e.Policy; p != nil {
		h.Policy, h.Order = p.Name, p.Order
		h.Messages, h.Lifted = string(p.Masking()), lifted(e)
		h.Conditional = h.Conditional || p.Conditions != nil || p.ObjectSelector != nil && !p.ObjectSelector.Empty()
	}
	h.Unsteady = r.unsteady(e)
	if hook, ok := r.Catalog.Lookup(e.Handler.Hook); ok {
		if since, instead, ok := hook.Deprecated(); ok {
			h.Deprecated = fmt.Sprintf("deprecated since %s; use %s", since, instead)
		}
	}
	return h
}

// offeredAs returns the name under which the gateway's discovery offers a handler, and why it is not the handler's own
// if that was asked for. A handler of a Rollout's member is offered as that of the Rollout, and one that is never
// called as nothing.
func (r *Reporter) offeredAs(s *registry.Snapshot, e *registry.Entry) (name, collision string) {
	if of := memberOf(s, e.Registration.Name); of != nil && e.Variants == nil {
		var ok bool
		if e, ok = s.Handler(e.Handler.Name + "." + of.Name); !ok || of.As == "" {
			return "", ""
		}
	}
	if h, ok := r.Catalog.Lookup(e.Handler.Hook); ok && h.Mergeable && !s.IsSidecar() {
		return strings.ToLower(h.Hook), ""
	}
	if chains, steps := s.StandsFor(e.Handler.Hook.GroupHook()); steps[e.Name] && chains[0].OneHandler {
		for _, c := range chains {
			if c.HasStep(e.Name) {
				return c.Name, "" // the chain is offered in place of it
			}
		}
	}
	return s.Offered(e)
}

func callsOf(c *activity.Calls) status.Calls {
	total := c.Total()
	return status.Calls{
		Total: total.Calls, Failures: total.Failures, NearTimeout: total.Near,
		P50: status.InSeconds(c.Quantile(.5)), P99: status.InSeconds(c.Quantile(.99)),
	}
}

func points(c *activity.Calls) status.Points {
	var p status.Points
	for _, point := range c.Points {
		p.Total, p.Failures = append(p.Total, point.Calls), append(p.Failures, point.Failures)
		p.P99 = append(p.P99, status.InSeconds(point.P99))
	}
	return p
}

// noExtension says that no extension has a name, and which name is nearly the same, or what else has it.
func (r *Reporter) noExtension(name string) string {
	if elsewhere := r.listedElsewhere(name); elsewhere != "" {
		return elsewhere
	}
	var names []string
	for _, x := range r.Gateway().Extensions {
		names = append(names, x.Name)
	}
	return noSuch("extension", name, names)
}

// InTurn returns a handler that answers one GET of status.Path after the other, as Scrapes does with those of metrics:
// with 2,000 extensions, a status takes a tenth of a second of a processor, and 50 MiB while it lasts.
func (r *Reporter) InTurn() http.Handler { return inTurn(r, limits.ScrapeTimeout) }

// ServeHTTP implements http.Handler: it answers a GET of status.Path.
func (r *Reporter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var body *status.Gateway
	query, ok := req.URL.Query(), true
	if query.Has("cluster") {
		r.serveCluster(w, query.Get("cluster"))
		return
	}
	missing := r.noExtension
	name := query.Get("extension")
	of := slices.IndexFunc(described(), func(k kinds.Kind) bool { return query.Get(k.Shown.Singular) != "" })
	switch {
	case name != "":
		body, ok = r.Extension(name)
	case of >= 0:
		k := &described()[of]
		name, missing = query.Get(k.Shown.Singular), func(name string) string { return r.noObject(k, name) }
		body, ok = r.Object(k.Shown.Singular, name)
	default:
		body = r.Gateway()
	}
	if ok && query.Has(status.ReleasedQuery) {
		body.Released = r.released()
	}
	if !ok {
		http.Error(w, missing(name), http.StatusNotFound)
		return
	}
	answer(w, body)
}

// serveCluster serves the Cluster of a NAMESPACE/NAME.
func (r *Reporter) serveCluster(w http.ResponseWriter, query string) {
	namespace, name, ok := strings.Cut(query, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		http.Error(w, fmt.Sprintf("cluster=%q: want cluster=NAMESPACE/NAME", text.Cut(query, limits.QuotedBytes)),
			http.StatusBadRequest)
		return
	}
	c, ok := r.Cluster(namespace, name)
	if !ok {
		http.Error(w, r.noCluster(namespace, name), http.StatusNotFound)
		return
	}
	answer(w, c)
}

// answer answers a request with JSON.
func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(body) // the client has left
}
