// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	golden "github.com/hookgate/hookgate/proto"
	"github.com/hookgate/hookgate/test/certificates"
)

// correct is an extension that keeps all rules.
type correct struct {
	over     Protocol // empty means both, one after the other
	change   func(*stub)
	checks   []string            // that must pass; the whole report must conform, too
	requests map[string][]byte   // in place of the package's own
	lax      bool                // rules of the level SHOULD may be broken
	url      func(string) string // may spell the URL of the extension in another way
}

// correctExtensions keep all rules, but in ways that a careless check would report.
var correctExtensions = map[string]correct{
	"has 512 handlers with names of 63 characters": {change: func(s *stub) {
		s.handlers = nil
		for i := range 512 {
			h := announce("ValidateTopology")
			h.Name = fmt.Sprintf("%s-%03d", strings.Repeat("v", 59), i)
			s.handlers = append(s.handlers, h)
		}
	}, checks: []string{"discovery.some", "discovery.count", "discovery.names", "discovery.content", "discovery.order", "discovery.sole", "answers.valid"}},
	"wants 30 seconds": {change: timeouts(proto.Int32(30)), checks: []string{"discovery.timeouts", "discovery.timeout-zero", "answers.in-time"}},
	// A busy machine may need more than this second for an answer.
	"wants 1 second": {change: timeouts(proto.Int32(1)), checks: []string{"discovery.timeouts", "discovery.timeout-zero"}},
	"wants 0 seconds, which means 10, and needs more than one": {change: func(s *stub) {
		timeouts(proto.Int32(0))(s)
		s.before = func(ctx context.Context, _ *catalog.Hook, _ proto.Message) (proto.Message, error) {
			return nil, wait(ctx, 1200*time.Millisecond)
		}
	}, checks: []string{"discovery.timeouts", "answers.valid", "answers.in-time"}, lax: true},
	"leaves out timeouts and failure policies": {change: func(s *stub) {
		for _, h := range s.handlers {
			h.TimeoutSeconds, h.FailurePolicy = nil, hooksv1alpha1.FailurePolicy_FAILURE_POLICY_UNSPECIFIED
		}
	}, checks: []string{"discovery.timeouts", "discovery.timeout-zero", "discovery.failure-policies", "answers.valid"}},
	"has the failure policy Ignore": {change: func(s *stub) {
		for _, h := range s.handlers {
			h.FailurePolicy = hooksv1alpha1.FailurePolicy_FAILURE_POLICY_IGNORE
		}
	}, checks: []string{"discovery.failure-policies"}},
	"understands v1beta1 in one handler and v1beta2 in another": {over: GRPC, change: func(s *stub) {
		s.only("BeforeClusterCreate", "BeforeClusterDelete")
		s.handlers[0].ClusterApiVersion, s.handlers[1].ClusterApiVersion = "v1beta1", "v1beta2"
	}, checks: []string{"discovery.objects", "answers.valid"}},
	"leaves out every member that may be absent": {over: REST, change: func(s *stub) {
		s.body = func(h *catalog.Hook, body []byte) []byte {
			return edit(body, func(o map[string]any) {
				for _, name := range []string{"kind", "apiVersion", "message", "timeoutSeconds", "failurePolicy"} {
					delete(o, name)
				}
			})
		}
	}, checks: []string{"discovery.timeouts", "discovery.failure-policies", "answers.kind", "answers.status", "answers.message"}},
	"writes null for every member that may be absent": {over: REST, change: func(s *stub) {
		s.body = func(h *catalog.Hook, body []byte) []byte {
			return edit(body, func(o map[string]any) {
				for _, name := range []string{"kind", "apiVersion", "message", "timeoutSeconds", "failurePolicy"} {
					if _, ok := o[name]; ok {
						o[name] = nil
					}
				}
			})
		}
	}, checks: []string{"discovery.timeouts", "discovery.failure-policies", "answers.kind", "answers.valid"}},
	"answers with unknown members, at every level": {change: func(s *stub) {
		s.discover = func(_ int, out *hooksv1alpha1.DiscoveryResponse) { unknown(out) }
		s.answer = func(_ *catalog.Hook, _, out proto.Message) { unknown(out) }
	}, checks: []string{"discovery.answers", "discovery.content", "answers.valid", "answers.kind", "answers.members", "patches.apply", "variables.schemas", "in-place.apply",
		"plan.control-plane", "determinism.answers"}},
	"answers with empty lists": {change: func(s *stub) {
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			switch out := out.(type) {
			case *hooksv1alpha1.GeneratePatchesResponse:
				out.Items = []*hooksv1alpha1.GeneratePatchesResponseItem{}
			case *hooksv1alpha1.DiscoverVariablesResponse:
				out.Variables = []*hooksv1alpha1.ClusterClassVariable{}
			case *hooksv1alpha1.CanUpdateMachineResponse:
				out.MachinePatch = &hooksv1alpha1.Patch{}
			}
		}
	}, checks: []string{"answers.valid", "answers.status", "determinism.answers", "patches.idempotent"}},
	"writes null for lists and patches": {over: REST, change: func(s *stub) {
		s.body = func(h *catalog.Hook, body []byte) []byte {
			return edit(body, func(o map[string]any) {
				for _, name := range []string{"items", "variables", "machinePatch", "infrastructureMachineTemplatePatch"} {
					if _, ok := o[name]; ok {
						o[name] = nil
					}
				}
			})
		}
	}, checks: []string{"answers.valid", "answers.status"}},

	"answers with 20 MiB": {over: REST, change: padAnswer(limits.BodyBytes), checks: []string{"answers.valid"}},
	"is quick after its first call": {change: func(s *stub) {
		s.only("BeforeClusterCreate")
		s.before = func(context.Context, *catalog.Hook, proto.Message) (proto.Message, error) {
			if s.count() == 1 {
				s.clock.advance(slow + 100*time.Millisecond)
			}
			return nil, nil
		}
	}, checks: []string{"answers.quick"}},
	"lets callers wait as long as can be said": {change: func(s *stub) {
		s.only("BeforeClusterCreate", "UpdateMachine")
		s.answer = func(h *catalog.Hook, _, out proto.Message) { retryAfter(h, out, 1<<31-1) }
	}, checks: []string{"answers.retry", "answers.retry-allowed", "answers.success", "in-place.update-failure"}},
	"fails to update a Machine, and says no more": {change: func(s *stub) {
		s.only("UpdateMachine")
		s.before = func(_ context.Context, h *catalog.Hook, _ proto.Message) (proto.Message, error) {
			return refusal(h, "no"), nil
		}
	}, checks: []string{"answers.retry", "answers.message", "in-place.update-failure"}, lax: true},
	"spells its JSON in another way each time": {over: REST, change: func(s *stub) {
		s.only("GeneratePatches", "DiscoverVariables", "ValidateTopology")
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			if out, ok := out.(*hooksv1alpha1.GeneratePatchesResponse); ok {
				for _, item := range out.GetItems() {
					item.Patch = bytes.ReplaceAll(item.GetPatch(), []byte(`:`), []byte(":"+strings.Repeat(" ", s.count())))
				}
			}
		}
		s.body = func(_ *catalog.Hook, body []byte) []byte {
			return append(bytes.Repeat([]byte("\n"), s.count()), body...)
		}
	}, checks: []string{"determinism.answers", "load.concurrent"}},

	"has TLS 1.2 alone": {change: func(s *stub) {
		s.tls = func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }
	}, checks: []string{"tls.certificate", "tls.version", "tls.old-versions"}},
	"has TLS 1.3 alone": {change: func(s *stub) {
		s.tls = func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }
	}, checks: []string{"tls.certificate", "tls.version", "tls.old-versions"}},
	"has a certificate for a little more than seven days": {change: func(s *stub) {
		s.notAfter = time.Now().Add(soon + time.Minute)
	}, checks: []string{"tls.certificate", "tls.expiry"}},

	"patches all that may be patched": {change: func(s *stub) {
		patches("", jsonPatch, `[{"op":"add","path":"/spec/template/metadata","value":{"labels":{"a":"b"},"annotations":{"c":"d"}}},`+
			`{"op":"add","path":"/metadata/labels/a","value":"b"},{"op":"remove","path":"/metadata/annotations"},`+
			`{"op":"add","path":"/spec/template/spec/new","value":{"deep":[]}}]`)(s)
		add := s.answer
		s.answer = func(h *catalog.Hook, in, out proto.Message) {
			add(h, in, out)
			// Nothing is there to remove the second time.
			item, answer := in.(*hooksv1alpha1.GeneratePatchesRequest).GetItems()[0], out.(*hooksv1alpha1.GeneratePatchesResponse)
			if bytes.Contains(item.GetObject().GetRaw(), []byte(`"deep"`)) {
				answer.Items = nil
			}
		}
	}, checks: []string{"patches.uid", "patches.decode", "patches.apply", "patches.scope", "patches.idempotent"}},
	"merges labels into a template that has no metadata": {change: patches("", jsonPatch+1, `{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`),
		checks: []string{"patches.apply", "patches.scope", "patches.idempotent"}},
	"adds labels to a template that has no metadata, in two patches": {change: func(s *stub) {
		s.only("GeneratePatches")
		s.answer = func(_ *catalog.Hook, in, out proto.Message) {
			item := in.(*hooksv1alpha1.GeneratePatchesRequest).GetItems()[0]
			if bytes.Contains(item.GetObject().GetRaw(), []byte(`"a":"b"`)) {
				out.(*hooksv1alpha1.GeneratePatchesResponse).Items = nil
				return
			}
			out.(*hooksv1alpha1.GeneratePatchesResponse).Items = []*hooksv1alpha1.GeneratePatchesResponseItem{
				{Uid: item.GetUid(), PatchType: jsonPatch, Patch: []byte(`[{"op":"add","path":"/spec/template/metadata","value":{}}]`)},
				{Uid: item.GetUid(), PatchType: jsonPatch, Patch: []byte(`[{"op":"add","path":"/spec/template/metadata/labels","value":{"a":"b"}}]`)},
			}
		}
	}, checks: []string{"patches.apply", "patches.scope", "patches.idempotent"}},
	"leaves the metadata of a template empty": {change: patches("", jsonPatch, `[{"op":"add","path":"/spec/template/metadata","value":null}]`),
		checks: []string{"patches.apply", "patches.scope", "patches.idempotent"}},
	"merges nothing":            {change: patches("", jsonPatch+1, `{}`), checks: []string{"patches.decode", "patches.apply", "patches.scope", "patches.idempotent"}},
	"has a patch of no changes": {change: patches("", jsonPatch, `[]`), checks: []string{"patches.decode", "patches.apply", "patches.scope", "patches.idempotent"}},
	"removes with null what is not there": {change: patches("", jsonPatch+1, `{"metadata":{"name":null,"labels":{"no":null}},"spec":{"no":null}}`+"\n"),
		checks: []string{"patches.decode"}, lax: true},
	"patches one template twice": {change: func(s *stub) {
		s.only("GeneratePatches")
		s.answer = func(_ *catalog.Hook, in, out proto.Message) {
			uid := in.(*hooksv1alpha1.GeneratePatchesRequest).GetItems()[0].GetUid()
			out.(*hooksv1alpha1.GeneratePatchesResponse).Items = []*hooksv1alpha1.GeneratePatchesResponseItem{
				{Uid: uid, PatchType: jsonPatch, Patch: []byte(`[{"op":"add","path":"/spec/template/spec/new","value":{}}]`)},
				{Uid: uid, PatchType: jsonPatch, Patch: []byte(`[{"op":"add","path":"/spec/template/spec/new/a","value":1}]`)},
			}
		}
	}, checks: []string{"patches.uid", "patches.apply", "patches.scope", "patches.idempotent"}},

	"has variables of every kind": {change: defines(
		variable("builtins", `{"type":"string","default":"","maxLength":0}`), variable("Builtin", `{"type":"boolean","default":false,"enum":[false]}`),
		variable(strings.Repeat("n", 256), `{"type":"integer","minimum":0,"maximum":0,"exclusiveMinimum":false,"default":0}`),
		variable("intOrString", `{"x-kubernetes-int-or-string":true,"default":"50%","example":5}`),
		variable("map", `{"type":"object","additionalProperties":{"type":"integer"},"default":{},"example":{"a":1}}`),
		variable("list", `{"type":"array","items":{"type":"string","maxLength":3},"maxItems":2,"default":["abc","abc"]}`),
		variable("any", `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"default":{"a":[1,"b",null]}}`),
		variable("either", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}],"default":{"a":""}}`),
		variable("ruled", `{"type":"string","pattern":"^a+$","default":"aaa","x-kubernetes-validations":[{"rule":"self.size() < 9"}]}`),
		variable("map of odd defaults", `{"type":"object","additionalProperties":{"type":"integer","default":"x"}}`),
		variable("nothing", `{"type":"string","default":null,"example":null,"enum":["a",null]}`),
		variable("described", `{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"description":"with a","required":["a"]}]}`),
	), checks: []string{"variables.names", "variables.schemas", "variables.values"}},
	"has 1000 variables": {change: defines(many(1000)...), checks: []string{"variables.names", "variables.schemas", "variables.values"}},

	"replaces the whole spec by what is desired": {change: func(s *stub) {
		s.only("CanUpdateMachine")
		s.answer = func(_ *catalog.Hook, in, out proto.Message) {
			var desired struct{ Spec json.RawMessage }
			if err := json.Unmarshal(in.(*hooksv1alpha1.CanUpdateMachineRequest).GetDesired().GetMachine().GetRaw(), &desired); err != nil || desired.Spec == nil {
				return
			}
			out.(*hooksv1alpha1.CanUpdateMachineResponse).MachinePatch = &hooksv1alpha1.Patch{PatchType: jsonPatch,
				Patch: fmt.Appendf(nil, `[{"op":"replace","path":"/spec","value":%s}]`, desired.Spec)}
		}
	}, checks: []string{"in-place.type", "in-place.apply", "in-place.scope", "in-place.desired"}},

	"goes through every version that there is": {change: plan(steps("v1.31.0", "v1.31.1", "v1.32.0-rc.1", "v1.32.0", "v1.33.4"), steps("v1.32.0", "v1.33.4")),
		checks: []string{"plan.control-plane", "plan.workers"}},
	"leaves the workers alone": {change: plan(steps("v1.31.0", "v1.32.0", "v1.33.4"), nil), checks: []string{"plan.control-plane", "plan.workers"}},
	"takes the workers three minor versions at once": {change: plan(steps("v1.31.0", "v1.32.0", "v1.33.4"), steps("v1.33.4")), requests: upgradeRequest("v1.30.0", "v1.33.4"),
		checks: []string{"plan.control-plane", "plan.workers"}},
	"takes workers after a control plane that is there already": {change: plan(nil, steps("v1.31.0", "v1.33.4")), requests: upgradeRequests("v1.33.4", "v1.29.0", "v1.33.4"),
		checks: []string{"plan.control-plane", "plan.workers"}},
	"has nothing to upgrade from a version that is spelled without v": {change: plan(nil, nil), requests: upgradeRequest("1.33.4", "v1.33.4"), checks: []string{"plan.control-plane", "plan.workers"}},
	"has nothing to upgrade": {change: plan(nil, nil), requests: upgradeRequest("v1.33.4", "v1.33.4"), checks: []string{"plan.control-plane", "plan.workers"}},
	"upgrades to another build alone": {change: plan(steps("v1.33.4+b"), nil), requests: upgradeRequest("v1.33.4+a", "v1.33.4+b"),
		checks: []string{"plan.control-plane"}},

	"refuses what it cannot read with 400": {over: REST, change: func(s *stub) {
		s.serve = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			if r.ContentLength < 50 && !strings.HasSuffix(r.URL.Path, "/discovery") {
				http.Error(w, "a mistake", http.StatusUnprocessableEntity)
				return
			}
			next(w, r)
		}
	}, checks: []string{"malformed.refused", "malformed.survives", "determinism.errors"}},
	"refuses objects that it cannot read": {change: func(s *stub) {
		s.before = func(_ context.Context, h *catalog.Hook, in proto.Message) (proto.Message, error) {
			if in, ok := in.(*hooksv1alpha1.BeforeClusterCreateRequest); ok && !bytes.HasPrefix(in.GetCluster().GetRaw(), []byte(`{"`)) {
				return nil, status.Error(codes.InvalidArgument, "no Cluster")
			}
			return nil, nil
		}
	}, checks: []string{"malformed.objects", "malformed.survives", "determinism.errors"}},
	"says how far it is": {change: says("BeforeClusterCreate", func(s *stub) string { return fmt.Sprintf("%d of 100 done", s.count()) }),
		checks: []string{"determinism.messages"}},
	"says when its window opens": {change: says("BeforeClusterUpgrade", func(*stub) string { return "waits until 2026-12-01T22:00:00Z" }),
		checks: []string{"determinism.messages"}},
	"goes on while it is asked": {change: says("BeforeClusterDelete", func(s *stub) string { return []string{"drains", "deletes"}[min(s.count()/4, 1)] }),
		checks: []string{"determinism.messages"}},
	"has neither reflection nor all services": {over: GRPC, change: func(s *stub) {
		s.only("BeforeClusterCreate")
		s.reflect = func(*grpc.Server) {}
		s.noSuch = map[string]bool{"hookgate.hooks.v1alpha1.TopologyMutationHooksService": true}
	}, checks: []string{"discovery.answers", "answers.valid", "protocol.unknown-hook", "protocol.health"}},
}

// TestCorrectExtensionsPass checks that every check passes for extensions that keep its rule.
func TestCorrectExtensionsPass(t *testing.T) {
	all := maps.Clone(correctExtensions)
	maps.Copy(all, toleratedExtensions)
	for how, tt := range all {
		for _, p := range []Protocol{REST, GRPC} {
			if tt.over != "" && tt.over != p {
				continue
			}
			t.Run(string(p)+"/"+how, func(t *testing.T) {
				t.Parallel()
				s := newStub()
				tt.change(s)
				checks := tt.checks
				if p == GRPC {
					checks = slices.DeleteFunc(slices.Clone(checks), func(id string) bool { return id == "answers.kind" })
				}
				target := s.start(t, p)
				if tt.url != nil {
					target.URL = tt.url(target.URL)
				}
				report, err := Run(t.Context(), target, Options{Only: checks, Requests: tt.requests})
				if err != nil {
					t.Fatal(err)
				}
				if len(report.Results) != len(checks) || !report.Conforms(!tt.lax) {
					t.Errorf("%d results of %d checks, conforms: %v", len(report.Results), len(checks), report.Conforms(!tt.lax))
				}
				for _, r := range report.Results {
					if (r.Level == Must || !tt.lax) && (r.Status == Fail || r.Status == Error) {
						t.Errorf("an extension that %s: %s: got %s %s %+v", how, r.ID, r.Status, r.Reason, r.Findings)
					}
				}
			})
		}
	}
}

// TestEachMustHasACorrectExtension checks that each MUST has an extension that keeps the rule in a way that a careless check
// would take for a violation. A new check without one fails here.
func TestEachMustHasACorrectExtension(t *testing.T) {
	covered := map[string]bool{}
	for _, all := range []map[string]correct{correctExtensions, toleratedExtensions} {
		for _, e := range all {
			for _, id := range e.checks {
				covered[id] = true
			}
		}
	}
	for _, p := range toleratedProviders {
		covered[p.check] = true
	}
	for _, g := range toleratedGroups {
		covered[g.check] = true
	}
	for _, c := range Checks() {
		if c.Level == Must && !covered[c.ID] {
			t.Errorf("%s has no extension that a careless check would fail", c.ID)
		}
		delete(covered, c.ID)
	}
	for id := range covered {
		t.Errorf("there is a correct extension for %s, which is no check", id)
	}
}

// TestClientCertificateIsShown checks that the checks work for an extension that requires client certificates.
func TestClientCertificateIsShown(t *testing.T) {
	pair := certificates.New(t)
	certificate := certificates.Of(t, pair)
	for _, p := range []Protocol{REST, GRPC} {
		s := newStub()
		s.only("BeforeClusterCreate")
		s.tls = func(c *tls.Config) {
			c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
			c.ClientCAs.AppendCertsFromPEM(pair.CAPEM)
		}
		target := s.start(t, p)
		target.Certificate = &certificate
		report, err := Run(t.Context(), target, Options{Only: []string{"tls", "discovery", "answers", "protocol"}})
		if err != nil || !report.Conforms(true) {
			t.Errorf("%s: %v %+v", p, err, report)
		}
	}
}

// wait waits, unless the caller leaves.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// timeouts leaves one handler, with this timeout.
func timeouts(seconds *int32) func(*stub) {
	return func(s *stub) {
		s.only("BeforeClusterCreate")
		s.handlers[0].TimeoutSeconds = seconds
	}
}

// padAnswer leaves one handler, whose answers have n bytes as JSON.
func padAnswer(n int) func(*stub) {
	return func(s *stub) {
		s.only("BeforeClusterCreate")
		s.body = func(h *catalog.Hook, body []byte) []byte {
			if h.Singleton() {
				return body
			}
			return append(body, bytes.Repeat([]byte(" "), n-len(body))...)
		}
	}
}

// edit changes every object in a JSON text.
func edit(body []byte, change func(map[string]any)) []byte {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return body
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if hook, ok := v["requestHook"]; ok { // its members are required
				defer func() { v["requestHook"] = hook }()
				delete(v, "requestHook")
			}
			change(v)
			for _, below := range v {
				walk(below)
			}
		case []any:
			for _, below := range v {
				walk(below)
			}
		}
	}
	walk(v)
	out, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return out
}

// unknown adds unknown members and fields to a message, at every level.
func unknown(m proto.Message) {
	changed := withUnknown(m)
	proto.Reset(m)
	proto.Merge(m, changed)
}

// retryAfter sets retryAfterSeconds.
func retryAfter(h *catalog.Hook, m proto.Message, seconds int32) {
	switch m := m.(type) {
	case *hooksv1alpha1.BeforeClusterCreateResponse:
		m.RetryAfterSeconds = seconds
	case *hooksv1alpha1.UpdateMachineResponse:
		m.RetryAfterSeconds = seconds
	default:
		panic(h.Hook)
	}
}

// upgradeRequest is the package's own request of GenerateUpgradePlan, between other versions.
func upgradeRequest(from, to string) map[string][]byte { return upgradeRequests(from, from, to) }

// upgradeRequests is that for workers of another version.
func upgradeRequests(controlPlane, workers, to string) map[string][]byte {
	body := golden.Request(hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "GenerateUpgradePlan"})
	return map[string][]byte{"GenerateUpgradePlan": edit(body, func(o map[string]any) {
		if _, ok := o["fromControlPlaneKubernetesVersion"]; ok {
			o["fromControlPlaneKubernetesVersion"], o["fromWorkersKubernetesVersion"], o["toKubernetesVersion"] = controlPlane, workers, to
		}
	})}
}
