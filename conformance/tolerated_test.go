// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// toleratedExtensions do what Cluster API accepts, although it is unusual.
var toleratedExtensions = map[string]correct{
	"says Failure unless it has the settings that it wants": {change: func(s *stub) {
		s.only("BeforeClusterCreate")
		s.before = func(_ context.Context, h *catalog.Hook, in proto.Message) (proto.Message, error) {
			if n := len(settingsOf(in)); n == 0 || n >= 100 {
				return refusal(h, "set region, and nothing else"), nil
			}
			return nil, nil
		}
	}, checks: []string{"envelope.settings"}},
	"refuses settings that it does not know as a mistake": {change: func(s *stub) {
		s.only("BeforeClusterCreate")
		s.before = func(_ context.Context, _ *catalog.Hook, in proto.Message) (proto.Message, error) {
			if len(settingsOf(in)) >= 100 {
				return nil, status.Error(codes.InvalidArgument, "there is no such setting")
			}
			return nil, nil
		}
	}, checks: []string{"envelope.settings"}},
	"says which members it ignores": {change: func(s *stub) {
		s.only("BeforeClusterCreate")
		s.answer = func(_ *catalog.Hook, in, out proto.Message) {
			r := out.(*hooksv1alpha1.BeforeClusterCreateResponse)
			r.Message = fmt.Sprintf("%d members ignored", len(in.(*hooksv1alpha1.BeforeClusterCreateRequest).GetUnknownMembers()))
		}
	}, checks: []string{"envelope.unknown-members"}},

	"does not look at bodies": {change: func(s *stub) {
		s.only("AfterControlPlaneInitialized")
		s.readsAll = true
	}, checks: []string{"malformed.refused", "malformed.survives"}, lax: true},
	"fails at what is not JSON, with the time": {over: REST, change: func(s *stub) {
		s.only("BeforeClusterCreate")
		s.serve = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			if r.ContentLength < 50 && !strings.HasSuffix(r.URL.Path, "/discovery") {
				http.Error(w, fmt.Sprintf(`{"timestamp":%d,"error":"Internal Server Error"}`, time.Now().UnixNano()), http.StatusInternalServerError)
				return
			}
			next(w, r)
		}
	}, checks: []string{"malformed.refused", "malformed.survives", "determinism.errors"}, lax: true},
	"answers under any name of a handler, and fails at other hooks": {over: REST, change: func(s *stub) {
		s.only("BeforeClusterCreate")
		s.serve = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			if strings.Contains(r.URL.Path, strings.ToLower(nowhere)) {
				http.Error(w, "what?", http.StatusInternalServerError)
				return
			}
			r.URL.Path = strings.Replace(r.URL.Path, noHandler, "beforeclustercreate", 1)
			next(w, r)
		}
	}, checks: []string{"protocol.unknown-hook", "protocol.unknown-handler"}, lax: true},

	"takes 4 MiB, and has hooks of one object alone": {change: func(s *stub) {
		s.only("BeforeClusterCreate", "AfterClusterUpgrade")
		s.limit = 4 << 20
	}, checks: []string{"load.large", "load.limit", "load.over"}},
	"lets calls wait for each other": {change: func(s *stub) {
		var alone sync.Mutex
		s.only("ValidateTopology", "BeforeClusterCreate")
		s.before = func(context.Context, *catalog.Hook, proto.Message) (proto.Message, error) {
			alone.Lock()
			defer alone.Unlock()
			return nil, nil
		}
	}, checks: []string{"load.concurrent", "load.deadline"}},
	"goes on with a call after its caller has left": {change: func(s *stub) {
		s.only("BeforeClusterCreate")
		s.before = func(context.Context, *catalog.Hook, proto.Message) (proto.Message, error) {
			return nil, wait(context.Background(), 50*time.Millisecond)
		}
	}, checks: []string{"load.deadline"}},
	"says in each answer how often it was asked": {change: func(s *stub) {
		s.only("GeneratePatches", "ValidateTopology", "DiscoverVariables")
		s.before = func(_ context.Context, h *catalog.Hook, in proto.Message) (proto.Message, error) {
			out, err := goodAnswer(h, in)
			if err != nil {
				return nil, status.Error(codes.InvalidArgument, err.Error())
			}
			m := out.ProtoReflect()
			m.Set(m.Descriptor().Fields().ByName("message"), protoreflect.ValueOfString(fmt.Sprintf("asked %d times", s.count())))
			return out, nil
		}
	}, checks: []string{"determinism.answers", "load.concurrent"}},
	"lists operations, patches and variables in any order": {change: func(s *stub) {
		s.only("GeneratePatches", "DiscoverVariables")
		s.answer = func(_ *catalog.Hook, in, out proto.Message) {
			turn := s.count()%2 == 0
			switch out := out.(type) {
			case *hooksv1alpha1.DiscoverVariablesResponse:
				if turn {
					slices.Reverse(out.Variables)
				}
			case *hooksv1alpha1.GeneratePatchesResponse:
				out.Items = nil
				for _, item := range in.(*hooksv1alpha1.GeneratePatchesRequest).GetItems()[:2] {
					operations := []string{`{"op":"add","path":"/spec/template/spec/a","value":1}`, `{"op":"add","path":"/spec/template/spec/b","value":2}`}
					if turn {
						slices.Reverse(operations)
					}
					out.Items = append(out.Items, &hooksv1alpha1.GeneratePatchesResponseItem{
						Uid: item.GetUid(), PatchType: jsonPatch, Patch: []byte("[" + strings.Join(operations, ",") + "]"),
					})
				}
				if turn {
					slices.Reverse(out.Items)
				}
			}
		}
	}, checks: []string{"determinism.answers", "load.concurrent", "malformed.survives"}},

	"states a kind and an apiVersion that are empty": {over: REST, change: func(s *stub) {
		s.body = func(_ *catalog.Hook, body []byte) []byte {
			return edit(body, func(o map[string]any) {
				if _, ok := o["status"]; ok {
					o["kind"], o["apiVersion"] = "", ""
				}
			})
		}
	}, checks: []string{"discovery.answers", "answers.valid", "answers.kind"}},
	"states a kind alone": {over: REST, change: func(s *stub) {
		s.body = func(_ *catalog.Hook, body []byte) []byte {
			return edit(body, func(o map[string]any) {
				if _, ok := o["status"]; ok {
					delete(o, "apiVersion")
				}
			})
		}
	}, checks: []string{"answers.valid", "answers.kind"}},

	"names its handlers after hooks that they are not for": {change: func(s *stub) {
		for i, h := range s.handlers {
			h.Name = strings.ToLower(s.handlers[(i+1)%len(s.handlers)].GetRequestHook().GetHook())
		}
		s.handlers[0].Name = "discovery"
	}, checks: []string{"discovery.hooks", "discovery.names", "answers.valid"}},
	"states defaults at some times, and leaves them out at others": {change: func(s *stub) {
		s.discover = func(n int, out *hooksv1alpha1.DiscoveryResponse) {
			for _, h := range out.GetHandlers() {
				h.TimeoutSeconds = proto.Int32(10)
				if n%2 == 0 {
					h.TimeoutSeconds, h.FailurePolicy = nil, hooksv1alpha1.FailurePolicy_FAILURE_POLICY_UNSPECIFIED
				}
			}
		}
	}, checks: []string{"discovery.content", "discovery.order"}},
	"serves HTTPS below a path, and its URL is in upper case": {over: REST, change: func(s *stub) {
		s.serve = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			http.StripPrefix("/team/a", next).ServeHTTP(w, r)
		}
	}, url: func(url string) string {
		return strings.Replace(url, "https", "HTTPS", 1) + "/team/a/"
	}, checks: []string{"tls.used", "tls.certificate", "answers.valid"}},

	"waits for less each time, until nothing is left to do": {change: func(s *stub) {
		s.only("UpdateMachine", "BeforeClusterCreate")
		s.answer = func(h *catalog.Hook, _, out proto.Message) {
			retryAfter(h, out, int32(max(0, 40-10*s.count())))
		}
	}, checks: []string{"idempotence.again"}},
	"refuses at first what it permits later": {change: func(s *stub) {
		s.only("ValidateTopology")
		s.before = func(_ context.Context, h *catalog.Hook, _ proto.Message) (proto.Message, error) {
			if s.count() == 1 {
				return refusal(h, "the quota is not known yet"), nil
			}
			return nil, nil
		}
	}, checks: []string{"idempotence.again"}},

	"has patches of both types for one template, one of them empty": {change: func(s *stub) {
		s.only("GeneratePatches")
		s.answer = func(_ *catalog.Hook, in, out proto.Message) {
			uid := in.(*hooksv1alpha1.GeneratePatchesRequest).GetItems()[0].GetUid()
			out.(*hooksv1alpha1.GeneratePatchesResponse).Items = []*hooksv1alpha1.GeneratePatchesResponseItem{
				{Uid: uid, PatchType: jsonPatch + 1}, // Cluster API takes it for no changes
				{Uid: uid, PatchType: jsonPatch + 1, Patch: []byte(`{"spec":{"template":{"spec":{"new":[]}}}}`)},
				{Uid: uid, PatchType: jsonPatch, Patch: []byte(`[{"op":"add","path":"/spec/template/spec/new/-","value":1}]`)},
			}
		}
	}, checks: []string{"patches.type", "patches.decode", "patches.apply", "patches.idempotent"}},

	"merges what is there already, beside the spec": {change: func(s *stub) {
		s.only("CanUpdateMachine")
		s.answer = func(_ *catalog.Hook, in, out proto.Message) {
			current, desired := machines(in)
			patch, err := json.Marshal(map[string]any{
				"apiVersion": current["apiVersion"], "kind": current["kind"], "metadata": current["metadata"],
				"spec": desired["spec"], "status": nil,
			})
			if err == nil && desired["spec"] != nil {
				out.(*hooksv1alpha1.CanUpdateMachineResponse).MachinePatch = mergePatch(string(patch))
			}
		}
	}, checks: []string{"in-place.type", "in-place.apply", "in-place.scope"}},
	"tests what it does not change": {change: func(s *stub) {
		s.only("CanUpdateMachine")
		s.answer = func(_ *catalog.Hook, in, out proto.Message) {
			_, desired := machines(in)
			if spec, _ := desired["spec"].(map[string]any); spec["version"] != nil {
				out.(*hooksv1alpha1.CanUpdateMachineResponse).MachinePatch = &hooksv1alpha1.Patch{PatchType: jsonPatch, Patch: fmt.Appendf(nil,
					`[{"op":"test","path":"/kind","value":"Machine"},{"op":"replace","path":"/spec/version","value":%q}]`, spec["version"])}
			}
		}
	}, checks: []string{"in-place.apply", "in-place.scope", "in-place.desired"}},
	"replaces a template, whose metadata it copies": {change: func(s *stub) {
		s.only("CanUpdateMachineSet")
		s.answer = func(_ *catalog.Hook, in, out proto.Message) {
			var current, desired struct {
				Spec struct {
					Template struct {
						Metadata any `json:"metadata,omitempty"`
						Spec     any `json:"spec"`
					} `json:"template"`
				} `json:"spec"`
			}
			r := in.(*hooksv1alpha1.CanUpdateMachineSetRequest)
			if json.Unmarshal(r.GetCurrent().GetMachineSet().GetRaw(), &current) != nil ||
				json.Unmarshal(r.GetDesired().GetMachineSet().GetRaw(), &desired) != nil {
				return
			}
			template := current.Spec.Template
			template.Spec = desired.Spec.Template.Spec
			value, err := json.Marshal(template)
			if err == nil && template.Spec != nil {
				out.(*hooksv1alpha1.CanUpdateMachineSetResponse).MachineSetPatch = &hooksv1alpha1.Patch{PatchType: jsonPatch,
					Patch: fmt.Appendf(nil, `[{"op":"replace","path":"/spec/template","value":%s}]`, value)}
			}
		}
	}, checks: []string{"in-place.apply", "in-place.scope"}},
}

// settingsOf returns the settings of a request.
func settingsOf(in proto.Message) map[string]string {
	return in.(interface{ GetSettings() map[string]string }).GetSettings()
}

// machines returns the current and the desired Machine of a request of CanUpdateMachine.
func machines(in proto.Message) (current, desired map[string]any) {
	r := in.(*hooksv1alpha1.CanUpdateMachineRequest)
	_ = json.Unmarshal(r.GetCurrent().GetMachine().GetRaw(), &current) // some are wrong on purpose
	_ = json.Unmarshal(r.GetDesired().GetMachine().GetRaw(), &desired)
	return current, desired
}
