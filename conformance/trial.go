// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
)

// trial makes a cluster, a machine and a pool of two machines, and deletes them again. The checks of infrastructure
// report what it has found, each its own part.
type trial struct {
	*session
	options *Infrastructure

	cluster, machine, pool string // external IDs, unique for this run
	outputs                *hooksv1alpha1.JSON

	found map[string]*verdict // by check
}

// try notes that a check was carried out, and returns its verdict.
func (t *trial) try(check string) *verdict {
	if t.found[check] == nil {
		t.found[check] = &verdict{}
	}
	return t.found[check]
}

// maxFindings is how many findings of one check are kept. An extension may do the same wrong in each answer.
const maxFindings = 5

// failf adds a finding without secrets.
func (t *trial) failf(check string, x *exchange, format string, args ...any) {
	if v := t.try(check); len(v.findings) < maxFindings {
		v.failf(t.masked(x), format, args...)
	}
}

// masked returns an exchange without credentials in what it got.
func (t *trial) masked(x *exchange) *exchange {
	clean := *x
	for _, secret := range t.options.Credentials {
		if len(secret) >= minSecret {
			clean.body = []byte(strings.ReplaceAll(string(clean.body), quoted(secret), "*****"))
			clean.text = strings.ReplaceAll(clean.text, secret, "*****")
		}
	}
	return &clean
}

// tried returns the trial of the session, which is carried out once, or why it is not.
func (s *session) tried(ctx context.Context) (*trial, string) {
	p := &s.provider
	switch {
	case p.absent != "":
		return nil, p.absent
	case p.options == nil:
		return nil, "this makes and deletes infrastructure, and runs only on request: see --infrastructure"
	case !p.answers():
		return nil, "DiscoverInfrastructure does not answer: see infrastructure.discovery"
	case p.once != nil:
		return p.once, ""
	}
	id := strings.ToLower(rand.Text()[:12])
	t := &trial{session: s, options: p.options, found: map[string]*verdict{}}
	t.cluster, t.machine, t.pool = "hookgate-check-"+id+"-c", "hookgate-check-"+id+"-m", "hookgate-check-"+id+"-p"
	p.once = t
	t.run(ctx)
	return t, ""
}

// run carries out the trial. Whatever happens, it deletes what it may have made, in the order in which Cluster API
// does.
func (t *trial) run(ctx context.Context) {
	for _, name := range []string{"DeleteMachinePool", "DeleteMachine", "DeleteCluster"} {
		t.deleteNothing(ctx, name)
	}
	defer t.clean(ctx)
	t.makeCluster(ctx)
	machine := t.makeMachine(ctx)
	t.makePool(ctx)
	if ctx.Err() == nil {
		t.remakeMachine(ctx, machine)
	}
}

// clean deletes everything, also after the run was interrupted.
func (t *trial) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.options.wait())
	defer cancel()
	t.remove(ctx, "DeleteMachinePool", t.pool)
	t.remove(ctx, "DeleteMachine", t.machine)
	t.remove(ctx, "DeleteCluster", t.cluster)
}

// call asks a handler. It returns nil if the extension has no handler of the hook.
func (t *trial) call(ctx context.Context, name, id string, change func(proto.Message)) *exchange {
	h := t.provider.handlers[name]
	if h == nil {
		return nil
	}
	request := h.hook.Request.New()
	fields := request.Descriptor().Fields()
	request.Set(fields.ByName("subject"), protoreflect.ValueOfMessage(t.subject(name, id).ProtoReflect()))
	m := request.Interface()
	if change != nil {
		change(m)
	}
	if h.understands != "" {
		if converted, err := t.objects.Request(m, h.understands); err == nil {
			m = converted.Message
		}
	}
	x := t.ask(ctx, h, m)
	x.sent = fmt.Sprintf("%s of %s", name, id) // the request has credentials
	return x
}

// asked is call, and inspects the answer.
func (t *trial) asked(ctx context.Context, name, id string, change func(proto.Message)) *exchange {
	x := t.call(ctx, name, id, change)
	if x != nil && ctx.Err() == nil {
		t.inspect(x)
	}
	return x
}

func (t *trial) subject(name, id string) *infrastructurev1alpha1.Subject {
	kind, parameters := strings.TrimPrefix(strings.TrimPrefix(name, "Reconcile"), "Delete"), t.options.Cluster
	switch kind {
	case "Machine":
		parameters = t.options.Machine
	case "MachinePool":
		parameters = t.options.MachinePool
	}
	if len(parameters) == 0 {
		parameters = json.RawMessage(`{}`)
	}
	s := &infrastructurev1alpha1.Subject{
		ExternalId: id, ClusterExternalId: t.cluster, Namespace: "hookgate-check", Name: id, ClusterName: t.cluster,
		Parameters: &hooksv1alpha1.JSON{Raw: parameters}, Credentials: t.options.Credentials,
		Cluster: objectOf("Cluster", t.cluster, t.cluster),
	}
	if kind != "Cluster" {
		s.ClusterOutputs = t.outputs
	}
	switch kind {
	case "Machine":
		s.Machine = objectOf(kind, id, t.cluster)
	case "MachinePool":
		s.MachinePool = objectOf(kind, id, t.cluster)
	}
	return s
}

// objectOf returns an object of Cluster API as a provider sends it.
func objectOf(kind, name, cluster string) *hooksv1alpha1.RawExtension {
	spec := fmt.Sprintf(`{"clusterName":%q}`, cluster)
	if kind == "Cluster" {
		spec = `{}`
	}
	return &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":%q,`+
		`"metadata":{"name":%q,"namespace":"hookgate-check","labels":{"cluster.x-k8s.io/cluster-name":%q}},"spec":%s}`,
		kind, name, cluster, spec)}
}

// until asks again until done reports true, for as long as infrastructure may take. It returns the last answer, and
// whether it was done; nil if the extension has no handler of the hook.
func (t *trial) until(
	ctx context.Context, name, id string, change func(proto.Message), done func(proto.Message) bool,
) (last *exchange, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, t.options.wait())
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		x := t.asked(ctx, name, id, change)
		switch {
		case x == nil:
			return nil, false
		case x.status() == success && done(x.message):
			return x, true
		case ctx.Err() != nil && last != nil:
			return last, false
		}
		last = x
		if x.parsed != nil && x.parsed.RetryAfterSeconds > 0 {
			pause = min(pause, time.Duration(x.parsed.RetryAfterSeconds)*time.Second)
		}
		select {
		case <-ctx.Done():
			return last, false
		case <-time.After(pause):
		}
	}
}
