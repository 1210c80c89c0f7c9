// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
	v1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1"
	v1alpha1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1alpha1"
	v1beta1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1beta1"
)

func protoString(s string) protoreflect.Value { return protoreflect.ValueOfString(s) }

// nameOf is the ExtensionConfig of the extension of a version that speaks a protocol.
func nameOf(version string, p registry.Protocol) string {
	return said(p) + "-" + version
}

func said(p registry.Protocol) string {
	if p == registry.GRPC {
		return "grpc"
	}
	return "rest"
}

// everyone registers an extension of each version, in each protocol.
func everyone(t *testing.T, w *fixture) {
	t.Helper()
	for _, version := range Versions() {
		for _, p := range protocols {
			w.extend(t, nameOf(version, p), version, p)
		}
	}
}

// Callers of each version over each protocol call handlers of each version over each protocol.
func TestCells(t *testing.T) {
	w := newFixture(t)
	everyone(t, w)
	for _, caller := range Versions() {
		for hookName, own := range handlersOf(caller) {
			for _, handler := range Versions() {
				if handlersOf(handler)[hookName] == "" {
					continue
				}
				for _, north := range protocols {
					for _, south := range protocols {
						t.Run(fmt.Sprintf(
							"%s/%s %s to %s %s", hookName, said(north), caller, said(south), handler,
						), func(t *testing.T) {
							w.cell(t, hookName, own, caller, north, handler, south)
						})
					}
				}
			}
		}
	}
}

func (w *fixture) cell(
	t *testing.T, hookName, own, caller string, north registry.Protocol, handler string, south registry.Protocol,
) {
	t.Helper()
	name := own + "." + nameOf(handler, south)
	got := w.call(t, north, w.hook(t, caller, hookName), requestOf(caller, hookName, name))
	if got.message == nil {
		t.Fatalf("%s: %s", got.kind, got.text)
	}
	asked, _ := w.extensions[nameOf(handler, south)].last()
	if diff := cmp.Diff(requestOf(handler, hookName, own), asked, protocmp.Transform()); diff != "" {
		t.Errorf("the handler was asked (-want +got):\n%s", diff)
	}
	want := answerFrom(handler, caller, hookName)
	if diff := cmp.Diff(want, got.message, protocmp.Transform()); diff != "" {
		t.Errorf("the caller got (-want +got):\n%s", diff)
	}

	var warnings []string
	if handler == "v1alpha1" {
		warnings = append(warnings, fmt.Sprintf(
			`299 - "handler \"%s\" implements %s/v1alpha1/%s, which is deprecated since v0.4.0 of the gateway: it should implement %s/v1"`, name, Group, hookName, Group))
	}
	if caller == "v1alpha1" {
		warnings = append(
			warnings,
			fmt.Sprintf(
				`299 - "%s/v1alpha1/%s is deprecated since v0.4.0 of the gateway: call %s/v1"`, Group, hookName, Group,
			),
		)
	}
	if diff := cmp.Diff(warnings, got.warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// Without a conversion, a caller's JSON goes on byte for byte, odd spaces and all; with one it is written anew.
func TestBodyGoesOnAsItIs(t *testing.T) {
	w := newFixture(t)
	everyone(t, w)
	for _, version := range Versions() {
		h := w.hook(t, version, BeforeNodeDrain)
		body := fmt.Appendf(
			nil,
			"{\t\"kind\":\"BeforeNodeDrainRequest\",   \"cluster\":{ \"kind\":\"Cluster\"},\"unheard\":1.50,\n \"apiVersion\":%q }  ",
			h.APIVersion(),
		)
		for _, handler := range Versions() {
			w.post(t, h, "drain."+nameOf(handler, registry.REST), body)
			_, got := w.extensions[nameOf(handler, registry.REST)].last()
			if same := bytes.Equal(got, body); same != (version == handler) {
				t.Errorf("%s to %s: the handler got\n%s\nof\n%s", version, handler, got, body)
			}
		}
	}
}

// Handlers of different versions of one hook are called together, and their answers merged in the caller's version.
func TestMixedVersionsAreMerged(t *testing.T) {
	for _, caller := range Versions() {
		for _, p := range protocols {
			t.Run(fmt.Sprintf("%s %s", said(p), caller), func(t *testing.T) {
				w := newFixture(t)
				everyone(t, w)
				for i, name := range slices.Sorted(keys(w.extensions)) {
					s := w.extensions[name]
					s.answers(func(proto.Message) (proto.Message, error) {
						m := responseOf(s.version, BeforeNodeDrain)
						setString(m, "message", name)
						m.ProtoReflect().Set(
							m.ProtoReflect().Descriptor().Fields().ByName("retry_after_seconds"),
							protoreflect.ValueOfInt32(int32(20-i)),
						)
						return m, nil
					})
				}
				h := w.hook(t, caller, BeforeNodeDrain)
				got := w.call(t, p, h, requestOf(caller, BeforeNodeDrain, ""))
				want := h.Response.New().Interface()
				reply := want.ProtoReflect()
				reply.Set(reply.Descriptor().Fields().ByName("status"), protoreflect.ValueOfEnum(1))
				setString(want, "message", "grpc-v1, grpc-v1alpha1, grpc-v1beta1, rest-v1, rest-v1alpha1, rest-v1beta1")
				reply.Set(reply.Descriptor().Fields().ByName("retry_after_seconds"), protoreflect.ValueOfInt32(15))
				unknown := reply.Mutable(reply.Descriptor().Fields().ByName("unknown_members")).Map()
				unknown.Set(
					protoreflect.ValueOfString("hint").MapKey(),
					protoreflect.ValueOfMessage((&hooksv1alpha1.JSON{Raw: []byte("4")}).ProtoReflect()),
				)
				if diff := cmp.Diff(want, got.message, protocmp.Transform()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", got.text, diff)
				}
				for name, s := range w.extensions {
					if asked, _ := s.last(); asked == nil {
						t.Errorf("%s was not called", name)
					}
				}
				w.extensions["rest-v1beta1"].answers(func(proto.Message) (proto.Message, error) {
					m := responseOf("v1beta1", BeforeNodeDrain)
					m.ProtoReflect().Set(
						m.ProtoReflect().Descriptor().Fields().ByName("status"), protoreflect.ValueOfEnum(2),
					)
					setString(m, "message", "no")
					return m, nil
				})
				got = w.call(t, p, h, requestOf(caller, BeforeNodeDrain, ""))
				reply = h.Response.New()
				reply.Set(reply.Descriptor().Fields().ByName("status"), protoreflect.ValueOfEnum(2))
				setString(reply.Interface(), "message", `handler "drain.rest-v1beta1": no`)
				if diff := cmp.Diff(reply.Interface(), got.message, protocmp.Transform()); diff != "" {
					t.Errorf("one Failure (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// keys yields the keys of a map.
func keys(m map[string]*server) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// A failure policy means the same across versions, and errors say what the caller's version has to do with it.
func TestFailuresAcrossVersions(t *testing.T) {
	w := newFixture(t)
	ignore := func(r *registry.Registration) {
		for i := range r.Handlers {
			r.Handlers[i].FailurePolicy = hook.Ignore
		}
	}
	broken := func(proto.Message) (proto.Message, error) { return nil, errors.New("out of order") }
	for _, p := range protocols {
		w.extend(t, nameOf("v1alpha1", p), "v1alpha1", p).answers(broken)
		w.extend(t, "lenient-"+nameOf("v1alpha1", p), "v1alpha1", p, ignore).answers(broken)
	}
	h := w.hook(t, "v1", BeforeNodeDrain)
	for _, north := range protocols {
		for _, south := range protocols {
			name := "drain." + nameOf("v1alpha1", south)
			got := w.call(t, north, h, requestOf("v1", BeforeNodeDrain, name))
			if got.kind != "BadResponse" || !strings.HasPrefix(got.text, fmt.Sprintf("handler %q: ", name)) {
				t.Errorf("%s to %s: got %s: %s", north, south, got.kind, got.text)
			}
			if len(got.warnings) != 1 || !strings.Contains(got.warnings[0], "v1alpha1") {
				t.Errorf("%s to %s: an error has the warnings %q", north, south, got.warnings)
			}
			got = w.call(
				t, north, w.hook(t, "v1beta1", BeforeNodeDrain),
				requestOf("v1beta1", BeforeNodeDrain, "drain.lenient-"+nameOf("v1alpha1", south)),
			)
			want := &v1beta1.BeforeNodeDrainResponse{
				Status:  hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
				Message: fmt.Sprintf("ignored: handler %q: BadResponse", "drain.lenient-"+nameOf("v1alpha1", south)),
			}
			if !proto.Equal(got.message, want) {
				t.Errorf(
					"%s to %s: Ignore gives %v %s, want a success of the caller's version", north, south,
					got.message, got.text,
				)
			}
		}
	}
}

func TestErrorsNameTheVersion(t *testing.T) {
	w := newFixture(t)
	w.extend(t, "stable", "v1", registry.REST)
	future := registry.Registration{Name: "future", ClientConfig: registry.ClientConfig{URL: "https://127.0.0.1:1"}, Handlers: []registry.Handler{{
		Name: "drain", Hook: hook.GroupVersionHook{Group: Group, Version: "v2", Hook: BeforeNodeDrain},
		Timeout: limits.Timeout, FailurePolicy: hook.Ignore,
	}}}
	if err := w.registry.Apply(future); err != nil {
		t.Fatal(err)
	}
	wrong := &v1alpha1.BeforeNodeDrainRequest{Handler: "drain.stable", Cluster: cluster, Endpoint: "nowhere"}
	for name, tc := range map[string]struct {
		reason string
		call   func(p registry.Protocol) answered
		kind   string
		text   string
	}{
		"NotConvertible": {
			reason: "a request that has no form in the handler's version",
			call: func(p registry.Protocol) answered {
				return w.call(t, p, w.hook(t, "v1alpha1", BeforeNodeDrain), wrong)
			},
			kind: "Conversion",
			text: `convert request from ` + Group + `/v1alpha1 to ` + Group + `/v1: endpoint: want host:port, got "nowhere"`,
		},
		"NotServed": {
			reason: "a handler of a version that the gateway does not know, whatever its failure policy",
			call: func(p registry.Protocol) answered {
				return w.call(
					t, p, w.hook(t, "v1beta1", BeforeNodeDrain), requestOf("v1beta1", BeforeNodeDrain, "drain.future"),
				)
			},
			kind: "Conversion",
			text: `handler "drain.future": convert request: the handler implements ` + Group + `/v2/BeforeNodeDrain, which the gateway does not serve; the handler must implement ` + Group + `/v1/BeforeNodeDrain`,
		},
		"ObjectMissing": {
			reason: "a fault of a request is reported in any version",
			call: func(p registry.Protocol) answered {
				return w.call(t, p, w.hook(t, "v1alpha1", BeforeNodeDrain), &v1alpha1.BeforeNodeDrainRequest{})
			},
			kind: "InvalidRequest", text: "cluster: required",
		},
	} {
		for _, p := range protocols {
			if got := tc.call(p); got.kind != tc.kind || got.text != tc.text {
				t.Errorf(
					"%s over %s: %s:\n got %s: %s\nwant %s: %s", name, p, tc.reason, got.kind, got.text, tc.kind,
					tc.text,
				)
			}
		}
	}
	for path, want := range map[string]string{
		"/" + Group + "/v0alpha1/beforenodedrain": "the hooks of " + Group + "/v0alpha1 were removed in v0.3.0 of the gateway: call " + Group + "/v1",
		"/" + Group + "/v2/beforenodedrain":       `no hook at path "/` + Group + `/v2/beforenodedrain": want /` + Group + `/v1/<hook>[/<handler>], or v1beta1, or v1alpha1`,
		"/" + Group + "/v1/BeforeNodeDrain":       `no hook at path "/` + Group + `/v1/BeforeNodeDrain": want /` + Group + `/v1/beforenodedrain[/<handler>]`,
		"/" + Group + "/v1/beforenothing":         `no hook "beforenothing": see "hookgate call --help" for their names`,
	} {
		if code, got := w.raw(t, path); code != 404 || got != want {
			t.Errorf("%s: got %d %s\nwant %s", path, code, got, want)
		}
	}
}

// An extension of removed versions only is not registered, and the error says why.
func TestRemovedVersionsAreKnown(t *testing.T) {
	w := newFixture(t)
	s := w.extend(t, "stable", "v1", registry.REST)
	old, ok := w.catalog.Version(Group, "v0alpha1")
	if !ok || !old.Removed() || old.Instead() != Group+"/v1" {
		t.Fatalf("v0alpha1 is %+v", old)
	}
	s.announce = &hooksv1alpha1.GroupVersionHook{ApiVersion: old.APIVersion(), Hook: BeforeNodeDrain}
	found, err := w.transports.Discover(t.Context(), s.config)
	if err != nil {
		t.Fatal(err)
	}
	want := `hook "` + Group + `/v0alpha1/BeforeNodeDrain" is of a version that the gateway removed in v0.3.0: build the extension for ` + Group + `/v1`
	if len(found.Handlers) != 0 || len(found.Skipped) != 2 || found.Skipped[0].Reason != want {
		t.Errorf("got %+v, want them skipped because\n%s", found, want)
	}
}

// The gateway offers its handlers in the version that the caller asks in: Cluster API refuses an answer with any other.
func TestDiscoveryInTheVersionOfTheCaller(t *testing.T) {
	w := newFixture(t)
	everyone(t, w)
	for _, version := range Versions() {
		for _, p := range protocols {
			h := w.hook(t, version, hook.Discovery)
			got := w.call(t, p, h, h.Request.New().Interface())
			if got.message == nil {
				t.Fatal(got.text)
			}
			handlers := got.message.(interface {
				GetHandlers() []*hooksv1alpha1.ExtensionHandler
			}).GetHandlers()
			if len(handlers) != 1+4 {
				t.Errorf(
					"%s %s: %d handlers, want the aggregate and one for each of the other hook's", p, version,
					len(handlers),
				)
			}
			for _, x := range handlers {
				want := h.APIVersion()
				if handlersOf(version)[x.GetRequestHook().GetHook()] == "" {
					want = Group + "/v1" // the newest of a hook that the caller's version lacks
				}
				if x.GetRequestHook().GetApiVersion() != want {
					t.Errorf("%s %s: is offered %v", p, version, x)
				}
			}
			if deprecated := len(got.warnings) == 1; deprecated != (version == "v1alpha1") {
				t.Errorf("%s %s: warnings %q", p, version, got.warnings)
			}
		}
	}
}

// What a conversion loses is recorded for the handler, in both directions.
func TestLossesAreRecorded(t *testing.T) {
	w := newFixture(t)
	everyone(t, w)
	req := requestOf("v1", BeforeNodeDrain, "drain.rest-v1alpha1").(*v1.BeforeNodeDrainRequest)
	req.Reason, req.GraceSeconds, req.Volumes[1].SizeBytes = "power", 31, 7
	if got := w.call(t, registry.REST, w.hook(t, "v1", BeforeNodeDrain), req); got.message == nil {
		t.Fatal(got.text)
	}
	w.extensions["grpc-v1"].answers(func(proto.Message) (proto.Message, error) {
		m := responseOf("v1", BeforeNodeDrain).(*v1.BeforeNodeDrainResponse)
		m.Approver = "me"
		return m, nil
	})
	if got := w.call(t, registry.GRPC, w.hook(t, "v1beta1", BeforeNodeDrain), requestOf("v1beta1", BeforeNodeDrain, "drain.grpc-v1")); got.message == nil {
		t.Fatal(got.text)
	}
	if got := w.call(t, registry.GRPC, w.hook(t, "v1", BeforeNodeDrain), requestOf("v1", BeforeNodeDrain, "drain.rest-v1")); got.message == nil {
		t.Fatal(got.text)
	}
	for config, want := range map[string]map[string][]string{
		"rest-v1alpha1": {"drain": {"graceSeconds", "reason", "volumes[*].sizeBytes"}},
		"grpc-v1":       {"drain": {"approver", "priority"}},
		"rest-v1":       nil,
	} {
		if got := w.losses.Of(config); !reflect.DeepEqual(got, want) {
			t.Errorf("%s has lost %v, want %v", config, got, want)
		}
	}
}

// Selectors and conditions look at a request in the newest version of its hook, so that they mean the same for every
// caller.
func TestPoliciesReadTheNewestVersion(t *testing.T) {
	w := newFixture(t)
	everyone(t, w)
	compiler, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	conditions, wrong := compiler.Compile(
		[]policy.Condition{{Name: "node", Expression: `request.nodeName == "worker-1" && request.port == 8443`}},
	)
	if len(wrong) > 0 {
		t.Fatal(wrong[0])
	}
	selector, err := metav1.LabelSelectorAsSelector(
		&metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "n"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	w.extend(t, "chosen", "v1beta1", registry.REST, func(r *registry.Registration) { r.NamespaceSelector = selector })
	w.registry.SetPolicies("chosen", registry.Policies{All: &policy.Policy{Name: "p", Conditions: conditions}})
	for _, caller := range Versions() {
		for _, p := range protocols {
			h := w.hook(t, caller, BeforeNodeDrain)
			if got := w.call(t, p, h, requestOf(caller, BeforeNodeDrain, "drain.chosen")); got.message == nil {
				t.Errorf("%s %s: %s", p, caller, got.text)
			}
			other := requestOf(caller, BeforeNodeDrain, "drain.chosen")
			setString(
				other, map[string]string{"v1": "node_name"}[caller]+map[bool]string{true: "node"}[caller != "v1"],
				"worker-2",
			)
			if got := w.call(t, p, h, other); got.kind != "UnknownHandler" ||
				!strings.Contains(got.text, `ExtensionPolicy "p" does not match`) {
				t.Errorf("%s %s: got %v %s", p, caller, got.message, got.text)
			}
		}
	}
}

// Calls of deprecated versions are counted, and handlers of them before any call.
func TestDeprecationMetrics(t *testing.T) {
	w := newFixture(t)
	everyone(t, w)
	const registered = `
# HELP hookgate_registered_deprecated_handlers Always 1, for each registered handler that implements a deprecated version of a hook, even if nothing calls the handler. Other handlers have no series.
# TYPE hookgate_registered_deprecated_handlers gauge
hookgate_registered_deprecated_handlers{group="hooks.test.hookgate.dev",handler="drain.grpc-v1alpha1",hook="BeforeNodeDrain",version="v1alpha1"} 1
hookgate_registered_deprecated_handlers{group="hooks.test.hookgate.dev",handler="drain.rest-v1alpha1",hook="BeforeNodeDrain",version="v1alpha1"} 1
`
	if err := testutil.GatherAndCompare(w.metrics, strings.NewReader(registered), "hookgate_registered_deprecated_handlers"); err != nil {
		t.Error(err)
	}
	w.call(t, registry.REST, w.hook(t, "v1alpha1", BeforeNodeDrain), requestOf("v1alpha1", BeforeNodeDrain, ""))
	w.call(t, registry.GRPC, w.hook(t, "v1", BeforeNodeDrain), requestOf("v1", BeforeNodeDrain, "drain.rest-v1alpha1"))
	w.call(t, registry.GRPC, w.hook(t, "v1", PlanDrains), requestOf("v1", PlanDrains, "plan.rest-v1"))
	const called = `
# HELP hookgate_deprecated_calls_total Total number of calls that use a deprecated version of a hook. The label side is "caller" (the caller uses the deprecated version; the label handler is empty) or "handler" (the handler implements the deprecated version).
# TYPE hookgate_deprecated_calls_total counter
hookgate_deprecated_calls_total{group="hooks.test.hookgate.dev",handler="",hook="BeforeNodeDrain",side="caller",version="v1alpha1"} 1
hookgate_deprecated_calls_total{group="hooks.test.hookgate.dev",handler="drain.grpc-v1alpha1",hook="BeforeNodeDrain",side="handler",version="v1alpha1"} 1
hookgate_deprecated_calls_total{group="hooks.test.hookgate.dev",handler="drain.rest-v1alpha1",hook="BeforeNodeDrain",side="handler",version="v1alpha1"} 2
`
	if err := testutil.GatherAndCompare(w.metrics, strings.NewReader(called), "hookgate_deprecated_calls_total"); err != nil {
		t.Error(err)
	}
}

// Warnings are in order, each once, and no more than an answer's header should hold.
func TestWarningsAreBounded(t *testing.T) {
	w := newFixture(t)
	s := w.extend(t, "config-00", "v1alpha1", registry.REST)
	for i := 1; i < 14; i++ {
		reg := registry.Registration{Name: fmt.Sprintf("config-%02d", i), ClientConfig: s.config, Handlers: []registry.Handler{{
			Name: "drain", Hook: w.hook(t, "v1alpha1", BeforeNodeDrain).GroupVersionHook, Timeout: limits.Timeout,
			FailurePolicy: hook.Fail,
		}}}
		if err := w.registry.Apply(reg); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range protocols {
		got := w.call(t, p, w.hook(t, "v1", BeforeNodeDrain), requestOf("v1", BeforeNodeDrain, ""))
		if len(got.warnings) != 11 || !slices.IsSorted(got.warnings[:10]) ||
			got.warnings[10] != `299 - "and 4 more handlers implement deprecated hooks"` {
			t.Errorf("%s: %d warnings: %s", p, len(got.warnings), strings.Join(got.warnings, "\n"))
		}
		if again := w.call(t, p, w.hook(t, "v1", BeforeNodeDrain), requestOf("v1", BeforeNodeDrain, "")); !slices.Equal(again.warnings, got.warnings) {
			t.Errorf("%s: the same call has other warnings:\n%q\n%q", p, got.warnings, again.warnings)
		}
	}
}

// The discovery of a group lists the hooks of the group alone, in the version of the caller: Cluster API refuses an
// answer with any other.
func TestDiscoveryOfSeveralGroups(t *testing.T) {
	product := catalog.Source{
		Group: hook.Group, Version: hook.Version, Lifetime: catalog.Lifetime{Introduced: "v0.1.0"},
		Files: []protoreflect.FileDescriptor{
			hooksv1alpha1.File_hookgate_hooks_v1alpha1_discovery_proto,
			hooksv1alpha1.File_hookgate_hooks_v1alpha1_lifecycle_hooks_proto,
		},
	}
	both, err := catalog.Build(Releases(), append(Sources(), product)...)
	if err != nil {
		t.Fatal(err)
	}
	if h, _ := both.ByName("discovery"); h.Group != Group {
		t.Errorf("the name Discovery is that of %s, and not of the first group", h)
	}
	r := registry.New()
	r.SetReady()
	d := gateway.NewDispatcher(
		gateway.Config{
			Catalog: both, Versions: NewConverter(both), Registry: r, Namespaces: namespaces{},
			Parts: shared.Parts{Codec: codec.New(both)},
		},
	)
	for _, asked := range slices.Concat(both.Discoveries()...) {
		m, err := d.Dispatch(t.Context(), gateway.Request{Hook: asked})
		if err != nil {
			t.Fatal(err)
		}
		offered := map[string]string{}
		for _, x := range m.(interface {
			GetHandlers() []*hooksv1alpha1.ExtensionHandler
		}).GetHandlers() {
			offered[x.GetRequestHook().GetHook()] = x.GetRequestHook().GetApiVersion()
		}
		number, name := 1, BeforeNodeDrain
		if asked.Group == hook.Group {
			number, name = 9, "BeforeClusterCreate"
		}
		if len(offered) != number || offered[name] != asked.APIVersion() {
			t.Errorf("asked in %s, the gateway offers %v", asked, offered)
		}
	}
}
