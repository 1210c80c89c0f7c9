// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// broken is an extension that breaks one rule.
type broken struct {
	check  string
	how    string
	over   Protocol // empty means both, one after the other
	breaks func(*stub)
	want   string // is in the problem of a finding
}

// beyondLimits break a rule narrowly: each is one beyond the limit that correctExtensions keep.
var beyondLimits = []broken{
	{"tls.expiry", "has a certificate for a little less than seven days", "", func(s *stub) { s.notAfter = time.Now().Add(soon - time.Minute) }, "it expires soon"},
	{"discovery.names", "has a name of 64 characters", "", func(s *stub) { s.handlers[0].Name = strings.Repeat("a", 64) }, "must be no more than 63 "},
	{"discovery.names", "has a name with an upper-case letter", "", func(s *stub) { s.handlers[0].Name = "Create" }, `name "Create" is not a DNS-1123 label`},
	{"discovery.names", "has a name with a dot", "", func(s *stub) { s.handlers[0].Name = "create.acme" }, `name "create.acme" is not a DNS-1123 label`},
	{"discovery.names", "has no name", "", func(s *stub) { s.handlers[0].Name = "" }, `name "" is not a DNS-1123 label`},
	{"discovery.hooks", "announces Discovery", "", func(s *stub) { s.handlers[0].RequestHook.Hook = "Discovery" }, `there is no hook "Discovery"`},
	{"discovery.hooks", "spells a hook in lower case", "", func(s *stub) { s.handlers[0].RequestHook.Hook = "beforeclustercreate" }, `there is no hook "beforeclustercreate"`},
	{"discovery.hooks", "leaves out the version", "", func(s *stub) { s.handlers[0].RequestHook.ApiVersion = "" }, `in apiVersion ""`},
	{"discovery.sole", "has two handlers of CanUpdateMachine", "", twice("CanUpdateMachine"), `CanUpdateMachine already has the handler "canupdatemachine"`},
	{"discovery.sole", "has two handlers of CanUpdateMachineSet", "", twice("CanUpdateMachineSet"), `CanUpdateMachineSet already has the handler "canupdatemachineset"`},
	{"discovery.objects", "understands v1beta3", GRPC, func(s *stub) { s.handlers[0].ClusterApiVersion = "v1beta3" }, `cluster_api_version "v1beta3"`},
	{"discovery.failure-policies", "spells its policy in lower case", REST, func(s *stub) { s.body = replace(`"failurePolicy":"Fail"`, `"failurePolicy":"fail"`) }, `failurePolicy is "fail"`},
	{"answers.valid", "answers with one byte more than 20 MiB", REST, padAnswer(limits.BodyBytes + 1), "larger than 20 MiB"},
	{"answers.kind", "spells the kind in lower case", REST, func(s *stub) {
		s.body = replace(`"kind":"BeforeClusterCreateResponse"`, `"kind":"beforeclustercreateresponse"`)
	},
		`kind is "beforeclustercreateresponse"`},
	{"patches.scope", "sets a name in the template's metadata", "", patches("", jsonPatch, `[{"op":"add","path":"/spec/template/metadata","value":{"name":"a"}}]`),
		"the patch changes /spec/template/metadata/name, which"},
	{"patches.scope", "sets a member of metadata that must not be patched", "", patches("", jsonPatch+1, `{"metadata":{"labels2":{"a":"b"}}}`), "the patch changes /metadata/labels2/a, which"},
	{"patches.scope", "makes all of it null", "", patches("", jsonPatch, `[{"op":"add","path":"/spec/template","value":null}]`), "the patch changes /spec/template, which"},
	{"patches.scope", "empties a member beside those that may be patched", "", patches("", jsonPatch, `[{"op":"add","path":"/spec/template/other","value":{}}]`),
		"the patch changes /spec/template/other, which"},
	{"patches.type", "has the type in lower case", REST, func(s *stub) {
		s.only("GeneratePatches")
		s.body = replace(`"patchType":"JSONPatch"`, `"patchType":"jsonpatch"`)
	}, `patchType is "jsonpatch"`},
	{"variables.values", "has a default that is one too long", "", defines(variable("a", `{"type":"array","items":{"type":"string"},"maxItems":1,"default":["a","b"]}`)), "openAPIV3Schema.default: "},
	{"variables.values", "has a value of its enum that is not allowed", "", defines(variable("a", `{"type":"integer","maximum":2,"enum":[1,3]}`)), "openAPIV3Schema.enum[1]: "},
	{"variables.values", "has a wrong default in the items of a list", "", defines(variable("a", `{"type":"array","items":{"type":"integer","default":"x"}}`)), "openAPIV3Schema.items.default: "},
	{"variables.values", "has members in a default that the schema does not know", "", defines(variable("a", `{"type":"object","properties":{"b":{"type":"string"}},"default":{"c":1}}`)), "openAPIV3Schema.default"},
	{"variables.values", "has an example against its own rule", "", defines(variable("a", `{"type":"string","example":"b","x-kubernetes-validations":[{"rule":"self == 'a'"}]}`)), "openAPIV3Schema.example: "},
	{"variables.schemas", "has a rule that does not compile", "", defines(variable("a", `{"type":"string","x-kubernetes-validations":[{"rule":"self <"}]}`)), "x-kubernetes-validations[0].rule: Invalid value"},
	{"variables.schemas", "has a rule that costs too much", "", defines(variable("a", `{"type":"object","properties":{"b":{"type":"array","items":{"type":"string"},"x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, self.all(z, x + y == z)))"}]}}}`)), "its estimated cost exceeds the limit"},
	{"variables.schemas", "has a label that is none", "", defines(variable("a", `{"type":"string","x-metadata":{"labels":{"a":"no label"}}}`)), "openAPIV3Schema.x-metadata.labels: "},
	{"variables.names", "has a name of 257 characters", "", defines(variable(strings.Repeat("n", 257), `{"type":"string"}`)), "the name has more than 256 characters"},
	{"variables.names", "has 1001 variables", "", defines(many(1001)...), "variables[1000]: there are more than 1000 variables"},
	{"variables.schemas", "has a rule about the past within a list", "", defines(variable("a", `{"type":"array","maxItems":2,"items":{"type":"string","maxLength":2,"x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}`)), "oldSelf cannot be used within"},
	{"variables.schemas", "has an empty rule", "", defines(variable("a", `{"type":"string","x-kubernetes-validations":[{"rule":" "}]}`)), "x-kubernetes-validations[0].rule: Required"},
	{"in-place.scope", "changes the labels of the MachineSet's template", "", func(s *stub) {
		s.only("CanUpdateMachineSet")
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			out.(*hooksv1alpha1.CanUpdateMachineSetResponse).MachineSetPatch = mergePatch(`{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`)
		}
	}, "the patch changes /spec/template/metadata/labels/a, which Cluster API drops"},
	{"plan.control-plane", "stays where it is", "", plan(steps("v1.31.0", "v1.31.0", "v1.32.0", "v1.33.4"), nil), "version v1.31.0 is not greater than v1.31.0"},
	{"plan.control-plane", "ends one patch version too soon", "", plan(steps("v1.31.0", "v1.32.0", "v1.33.3"), nil), "ends with v1.33.3, not with v1.33.4"},
	{"malformed.refused", "answers what it cannot read with 500", REST, func(s *stub) {
		s.serve = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			if r.ContentLength == 0 {
				http.Error(w, "no body", http.StatusInternalServerError)
				return
			}
			next(w, r)
		}
	}, "this reports a failure of the server"},
}

// twice announces a second handler of a hook.
func twice(hookName string) func(*stub) {
	return func(s *stub) {
		second := announce(hookName)
		second.Name = "second"
		s.handlers = append(s.handlers, second)
	}
}

const (
	succeeded = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
	jsonPatch = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH
)

// brokenExtensions has at least one row for each check.
var brokenExtensions = []broken{
	{"tls.used", "serves HTTP", REST, func(s *stub) { s.plain = true }, "there is no TLS"},
	{"tls.certificate", "has an expired certificate", "", func(s *stub) { s.notAfter = time.Now().Add(-30 * time.Minute) }, "certificate has expired or is not yet valid"},
	{"tls.certificate", "has a certificate for another name", "", func(s *stub) { s.named = "other.example" }, "127.0.0.1"},
	{"tls.version", "speaks TLS 1.1", REST, func(s *stub) {
		s.tls = func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }
	}, "it refuses TLS 1.2 and TLS 1.3, and agrees to TLS 1.1"},
	{"tls.old-versions", "speaks TLS 1.0, too", REST, func(s *stub) { s.tls = func(c *tls.Config) { c.MinVersion = tls.VersionTLS10 } }, "it agrees to TLS 1.1"},
	{"tls.expiry", "has a certificate for another day", "", func(s *stub) { s.notAfter = time.Now().Add(24 * time.Hour) }, "it expires soon"},

	{"discovery.answers", "answers Failure", "", func(s *stub) {
		s.discover = func(_ int, out *hooksv1alpha1.DiscoveryResponse) {
			out.Status = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
		}
	}, `the status is "Failure", not "Success"`},
	{"discovery.answers", "does not implement it", GRPC, func(s *stub) {
		s.noSuch = map[string]bool{"hookgate.hooks.v1alpha1.DiscoveryService": true}
		s.reflect = func(*grpc.Server) {}
	}, "there is no answer of Discovery"},
	{"discovery.answers", "answers with timeouts that are text", REST, func(s *stub) { s.body = replace(`"timeoutSeconds":20`, `"timeoutSeconds":"20"`) }, "cannot be read"},
	{"discovery.some", "has no handlers", "", func(s *stub) { s.handlers = nil }, "there are no handlers"},
	{"discovery.count", "has too many", "", func(s *stub) {
		s.only("ValidateTopology")
		for i := range 512 {
			h := announce("ValidateTopology")
			h.Name = fmt.Sprintf("validate-%d", i)
			s.handlers = append(s.handlers, h)
		}
	}, "there are 513 handlers"},
	{"discovery.names", "has a name with an underscore", "", func(s *stub) { s.handlers[0].Name = "after_cluster" }, `name "after_cluster" is not a DNS-1123 label`},
	{"discovery.names", "has a name twice", "", func(s *stub) { s.handlers[1].Name = s.handlers[0].GetName() }, "occurs twice"},
	{"discovery.hooks", "has a hook that does not exist", "", func(s *stub) { s.handlers[0].RequestHook.Hook = "BeforeCoffee" }, `there is no hook "BeforeCoffee"`},
	{"discovery.hooks", "has a version that does not exist", "", func(s *stub) { s.handlers[0].RequestHook.ApiVersion = "hooks.runtime.cluster.x-k8s.io/v9" }, `in apiVersion "hooks.runtime.cluster.x-k8s.io/v9"`},
	{"discovery.timeouts", "wants 31 seconds", "", func(s *stub) { s.handlers[0].TimeoutSeconds = proto.Int32(31) }, "timeoutSeconds is 31"},
	{"discovery.timeouts", "wants less than none", "", func(s *stub) { s.handlers[0].TimeoutSeconds = proto.Int32(-1) }, "timeoutSeconds is -1"},
	{"discovery.objects", "understands an unknown version", GRPC, func(s *stub) { s.handlers[0].ClusterApiVersion = "v1" }, `cluster_api_version "v1" is neither "v1beta1" nor "v1beta2"`},
	{"discovery.timeout-zero", "wants none", "", func(s *stub) { s.handlers[0].TimeoutSeconds = proto.Int32(0) }, "timeoutSeconds is 0, which means 10"},
	{"discovery.failure-policies", "has a policy of its own", REST, func(s *stub) { s.body = replace(`"failurePolicy":"Fail"`, `"failurePolicy":"Maybe"`) }, `failurePolicy is "Maybe"`},
	{"discovery.failure-policies", "has a policy of its own", GRPC, func(s *stub) { s.handlers[0].FailurePolicy = 17 }, `failurePolicy is "17"`},
	{"discovery.sole", "updates machines twice", "", twice("UpdateMachine"), `UpdateMachine already has the handler "updatemachine"`},
	{"discovery.content", "forgets a handler at times", "", func(s *stub) {
		s.discover = func(n int, out *hooksv1alpha1.DiscoveryResponse) {
			if n%4 == 0 {
				out.Handlers = out.Handlers[1:]
			}
		}
	}, "the handlers differ from those in the first answer"},
	{"discovery.content", "answers Failure at times", "", func(s *stub) {
		s.discover = func(n int, out *hooksv1alpha1.DiscoveryResponse) {
			if n%4 == 0 {
				out.Status = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
			}
		}
	}, "Discovery answered before, but does not now"},
	{"discovery.content", "has less patience at times", "", func(s *stub) {
		s.discover = func(n int, out *hooksv1alpha1.DiscoveryResponse) {
			if n%4 == 0 {
				out.Handlers[1].TimeoutSeconds = proto.Int32(9)
			}
		}
	}, "differ from those in the first answer"},
	{"discovery.order", "announces in the order of a map", "", func(s *stub) {
		s.discover = func(n int, out *hooksv1alpha1.DiscoveryResponse) {
			n %= len(out.Handlers)
			out.Handlers = append(out.Handlers[n:], out.Handlers[:n]...)
		}
	}, "the order is ["},

	{"answers.valid", "throws", "", fails(status.Error(codes.Internal, "boom")), "there is no answer of BeforeClusterCreate"},
	{"answers.valid", "does not implement what it announces", GRPC, fails(status.Error(codes.Unimplemented, "not here")), "there is no answer of BeforeClusterCreate"},
	{"answers.valid", "answers HTML", REST, func(s *stub) {
		s.body = func(h *catalog.Hook, body []byte) []byte {
			if h.Singleton() {
				return body
			}
			return []byte("<html>")
		}
	}, "the answer cannot be read as BeforeClusterCreateResponse"},
	{"answers.valid", "answers 21 MiB", "", func(s *stub) {
		s.only("BeforeClusterCreate")
		s.limit = 2 * limits.BodyBytes
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			out.(*hooksv1alpha1.BeforeClusterCreateResponse).Message = strings.Repeat("x", 21<<20)
		}
	}, ""},
	{"answers.in-time", "never answers", "", func(s *stub) {
		s.only("BeforeClusterCreate")
		s.handlers[0].TimeoutSeconds = proto.Int32(1)
		s.before = func(ctx context.Context, _ *catalog.Hook, _ proto.Message) (proto.Message, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}, "its timeout is 1s"},
	{"answers.quick", "takes its time", "", func(s *stub) {
		s.only("BeforeClusterCreate")
		s.before = func(context.Context, *catalog.Hook, proto.Message) (proto.Message, error) {
			s.clock.advance(slow + 100*time.Millisecond)
			return nil, nil
		}
	}, "the second call took 2.1s (the first call: 2.1s), and the timeout is 20s"},
	{"answers.quick", "needs most of a short timeout", "", func(s *stub) {
		s.only("BeforeClusterCreate")
		s.handlers[0].TimeoutSeconds = proto.Int32(1)
		s.before = func(context.Context, *catalog.Hook, proto.Message) (proto.Message, error) {
			s.clock.advance(900 * time.Millisecond)
			return nil, nil
		}
	}, "the second call took 900ms (the first call: 900ms), and the timeout is 1s"},
	{"answers.kind", "answers as another hook", REST, func(s *stub) {
		s.body = replace(`"kind":"BeforeClusterCreateResponse"`, `"kind":"BeforeClusterDeleteResponse"`)
	}, `kind is "BeforeClusterDeleteResponse", not "BeforeClusterCreateResponse"`},
	{"answers.kind", "answers in another version", REST, func(s *stub) { s.body = replace(`x-k8s.io/v1alpha1","status"`, `x-k8s.io/v1beta1","status"`) }, `apiVersion is "hooks.runtime.cluster.x-k8s.io/v1beta1"`},
	{"answers.members", "asks to wait in snake_case", REST, func(s *stub) {
		s.only("BeforeClusterCreate")
		s.body = replace(`"retryAfterSeconds":0`, `"retry_after_seconds":60`)
	}, `BeforeClusterCreateResponse has no member retry_after_seconds: did you mean retryAfterSeconds?`},
	{"answers.members", "asks to wait in unknown_members", GRPC, func(s *stub) {
		s.only("BeforeClusterCreate")
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			out.(*hooksv1alpha1.BeforeClusterCreateResponse).UnknownMembers = map[string]*hooksv1alpha1.JSON{"retry_after_seconds": {Raw: []byte("60")}}
		}
	}, `did you mean retryAfterSeconds?`},
	{"answers.valid", "asks to wait in unknown_members, in another case", GRPC, func(s *stub) {
		s.only("BeforeClusterCreate")
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			out.(*hooksv1alpha1.BeforeClusterCreateResponse).UnknownMembers = map[string]*hooksv1alpha1.JSON{"RetryAfterSeconds": {Raw: []byte("60")}}
		}
	}, `unknown_members["RetryAfterSeconds"]: differs from "retryAfterSeconds" only in case`},
	{"answers.valid", "asks to wait twice", REST, func(s *stub) {
		s.only("BeforeClusterCreate")
		s.body = replace(`"retryAfterSeconds":0`, `"retryAfterSeconds":0,"RetryAfterSeconds":60`)
	}, `retryAfterSeconds: occurs twice in one object, in upper and lower case`},
	{"answers.members", "announces timeouts in snake_case", REST, func(s *stub) { s.body = replace(`"timeoutSeconds":20`, `"timeout_seconds":20`) },
		`ExtensionHandler has no member timeout_seconds: did you mean timeoutSeconds?`},
	{"answers.status", "forgets the status", "", func(s *stub) {
		s.answer = func(h *catalog.Hook, _, out proto.Message) {
			out.ProtoReflect().Clear(h.Response.Descriptor().Fields().ByName("status"))
		}
	}, `the status is ""`},
	{"answers.success", "always says no", "", refuses("no"), "the status is Failure"},
	{"answers.retry", "wants to be called before it was", "", func(s *stub) {
		s.only("BeforeClusterCreate")
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			out.(*hooksv1alpha1.BeforeClusterCreateResponse).RetryAfterSeconds = -1
		}
	}, "retryAfterSeconds is -1"},
	{"answers.retry-allowed", "blocks where nothing can be", REST, func(s *stub) {
		s.only("AfterControlPlaneInitialized")
		s.body = replace(`"status":"Success"`, `"status":"Success","retryAfterSeconds":5`)
	}, "AfterControlPlaneInitialized cannot block"},
	{"answers.message", "says no without a reason", "", refuses(""), "the message is empty"},

	{"patches.uid", "makes up a uid", "", patches("made-up", jsonPatch, `[]`), `no item of the request has the uid "made-up"`},
	{"patches.type", "forgets the type", "", patches("", 0, `[]`), `patchType is ""`},
	{"patches.type", "has a type of its own", GRPC, patches("", 9, `[]`), `patchType is "9"`},
	{"patches.decode", "sends an empty JSON patch", "", patches("", jsonPatch, ``), "not a JSONPatch: it is empty: if nothing changes, "},
	{"patches.decode", "sends an object as JSON patch", "", patches("", jsonPatch, `{"spec":{}}`), "not a JSONPatch: "},
	{"patches.decode", "sends a list as merge patch", "", patches("", jsonPatch+1, `[{"op":"add"}]`), "not a JSONMergePatch: a merge patch is a JSON object, not a list"},
	{"patches.apply", "replaces what is not there", "", patches("", jsonPatch, `[{"op":"replace","path":"/spec/template/spec/nothing/here","value":1}]`), "it does not apply: "},
	{"patches.apply", "removes the kind", "", patches("", jsonPatch, `[{"op":"remove","path":"/kind"}]`), "the result is not a Kubernetes object"},
	{"patches.scope", "renames the template", "", patches("", jsonPatch, `[{"op":"replace","path":"/metadata/name","value":"mine"}]`), "the patch changes /metadata/name, which Cluster API drops"},
	{"patches.scope", "changes the kind", "", patches("", jsonPatch+1, `{"kind":"Mine"}`), "the patch changes /kind, which"},
	{"patches.scope", "sets a member of spec beside template", "", patches("", jsonPatch, `[{"op":"add","path":"/spec/paused","value":true}]`), "the patch changes /spec/paused, which"},
	{"patches.idempotent", "counts in the template", "", func(s *stub) {
		s.only("GeneratePatches")
		s.answer = func(_ *catalog.Hook, in, out proto.Message) {
			item := in.(*hooksv1alpha1.GeneratePatchesRequest).GetItems()[0]
			out.(*hooksv1alpha1.GeneratePatchesResponse).Items = []*hooksv1alpha1.GeneratePatchesResponseItem{{Uid: item.GetUid(), PatchType: jsonPatch,
				Patch: fmt.Appendf(nil, `[{"op":"add","path":"/spec/template/spec/size","value":%d}]`, len(item.GetObject().GetRaw()))}}
		}
	}, "which is patched already, is changed again at /spec/template/spec/size"},

	{"variables.names", "takes Cluster API's name", "", defines(variable("builtin", `{"type":"string"}`)), "Cluster API's own"},
	{"variables.names", "has a dot in a name", "", defines(variable("a.b", `{"type":"string"}`)), `the name "a.b" has a dot`},
	{"variables.names", "has no name", "", defines(variable("", `{"type":"string"}`)), "the name is empty"},
	{"variables.names", "has a name twice", "", defines(variable("a", `{"type":"string"}`), variable("a", `{"type":"string"}`)), `the name "a" occurs twice`},
	{"variables.schemas", "has a type of its own", "", defines(variable("a", `{"type":"text"}`)), `Unsupported value: "text"`},
	{"variables.schemas", "forgets the types of members", "", defines(variable("a", `{"type":"object","properties":{"b":{}}}`)), "openAPIV3Schema.properties[b].type: Required value"},
	{"variables.schemas", "has both properties and additionalProperties", "", defines(variable("a", `{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":{"type":"string"}}`)), "exclude each other"},
	{"variables.schemas", "has a pattern that is none", "", defines(variable("a", `{"type":"string","pattern":"("}`)), `variable "a"`},
	{"variables.schemas", "has no schema", GRPC, defines(&hooksv1alpha1.ClusterClassVariable{Name: "a", Required: new(true)}), "it has no schema.openAPIV3Schema"},
	{"variables.values", "has a default of another type", "", defines(variable("a", `{"type":"integer","default":"three"}`)), `openAPIV3Schema.default: Invalid value`},
	{"variables.values", "has an example that is not allowed", "", defines(variable("a", `{"type":"object","properties":{"b":{"type":"string","minLength":3,"example":"x"}}}`)), `properties[b].example: Invalid value`},

	{"in-place.type", "forgets the type", "", machinePatch(0, `{"spec":{"version":"v1.33.4"}}`), `patchType is ""`},
	{"in-place.apply", "sends a type alone", "", machinePatch(jsonPatch, ``), "it is empty: if nothing changes, leave out the patch and its type, or write []"},
	{"in-place.apply", "sends half of a patch", "", machinePatch(jsonPatch, `[{"op":`), "the patch does not apply to the current object"},
	{"in-place.apply", "removes what is not there", "", machinePatch(jsonPatch, `[{"op":"remove","path":"/spec/nothing"}]`), "the patch does not apply to the current object"},
	{"in-place.scope", "changes labels", "", machinePatch(jsonPatch, `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`), "the patch changes /metadata/labels/a, which Cluster API drops"},
	{"in-place.scope", "changes the replicas of a MachineSet", "", func(s *stub) {
		s.only("CanUpdateMachineSet")
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			out.(*hooksv1alpha1.CanUpdateMachineSetResponse).MachineSetPatch = mergePatch(`{"spec":{"replicas":77}}`)
		}
	}, "machineSetPatch: the patch changes /spec/replicas, which Cluster API drops"},
	{"in-place.apply", "removes what is not there, for a patch version alone", "", func(s *stub) {
		s.only("CanUpdateMachine")
		s.answer = func(_ *catalog.Hook, in, out proto.Message) {
			patch := &hooksv1alpha1.Patch{PatchType: jsonPatch, Patch: []byte(`[{"op":"remove","path":"/spec/nothing"}]`)}
			if _, version, _ := readObject(in.(*hooksv1alpha1.CanUpdateMachineRequest).GetCurrent().GetMachine()); version != "v1.33.3" {
				patch = nil
			}
			out.(*hooksv1alpha1.CanUpdateMachineResponse).MachinePatch = patch
		}
	}, "the patch does not apply to the current object"},
	{"in-place.desired", "sets an undesired version", "", machinePatch(jsonPatch+1, `{"spec":{"version":"v1.99.0"}}`), "the patch sets /spec/version to a value other than the desired one"},
	{"in-place.update-failure", "fails and goes on", "", func(s *stub) {
		s.only("UpdateMachine")
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			out.(*hooksv1alpha1.UpdateMachineResponse).Status = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
		}
	}, "the status is Failure and retryAfterSeconds is 10"},

	{"plan.control-plane", "leaves out a minor version", "", plan(steps("v1.31.0", "v1.33.4"), nil), "the step from v1.31.0 to v1.33.4 skips minor versions"},
	{"plan.control-plane", "does not arrive", "", plan(steps("v1.31.0", "v1.32.0"), nil), "ends with v1.32.0, not with v1.33.4"},
	{"plan.control-plane", "goes back", "", plan(steps("v1.31.0", "v1.30.0"), nil), "version v1.30.0 is not greater than v1.31.0"},
	{"plan.control-plane", "is no plan", "", plan(nil, nil), "controlPlaneUpgrades is empty"},
	{"plan.control-plane", "names a version that is none", "", plan(steps("latest"), nil), `"latest" is not a version`},
	{"plan.workers", "takes workers where the control plane does not get", "", plan(steps("v1.31.0", "v1.32.0", "v1.33.4"), steps("v1.32.7", "v1.33.4")), `the control plane never has version "v1.32.7"`},
	{"plan.workers", "leaves workers behind", "", plan(steps("v1.31.0", "v1.32.0", "v1.33.4"), steps("v1.32.0")), "workersUpgrades ends with v1.32.0, not with v1.33.4"},

	{"envelope.settings", "throws at settings that it does not know", "", throws(func(settings map[string]string) bool { return len(settings) >= 100 }),
		"with settings that the handler does not know, there is no answer of the hook"},
	{"envelope.settings", "throws without settings", "", throws(func(settings map[string]string) bool { return len(settings) == 0 }),
		"without settings, there is no answer of the hook"},
	{"envelope.unknown-members", "refuses members that it does not know", "", unless(func(in proto.Message) bool {
		return len(in.(interface {
			GetUnknownMembers() map[string]*hooksv1alpha1.JSON
		}).GetUnknownMembers()) == 0
	}, "unknown member"), `with members that the handler does not know, the status is "Failure"`},

	{"idempotence.again", "has created it already", "", func(s *stub) {
		s.only("BeforeClusterCreate")
		s.before = func(_ context.Context, h *catalog.Hook, _ proto.Message) (proto.Message, error) {
			if s.count() > 1 {
				return refusal(h, "it exists already"), nil
			}
			return nil, nil
		}
	}, `the same call again: the status is "Failure", although the realistic request got Success`},
	{"determinism.answers", "counts its answers", "", func(s *stub) {
		s.only("GeneratePatches")
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			item := out.(*hooksv1alpha1.GeneratePatchesResponse).GetItems()[0]
			item.Patch = bytes.Replace(item.GetPatch(), []byte("registry.example.com"), fmt.Appendf(nil, "registry-%d", s.count()), 1)
		}
	}, "the answer differs from the one before"},
	{"determinism.errors", "says when it failed", "", func(s *stub) {
		s.only("BeforeClusterCreate")
		s.before = func(_ context.Context, h *catalog.Hook, in proto.Message) (proto.Message, error) {
			if raw := in.(*hooksv1alpha1.BeforeClusterCreateRequest).GetCluster().GetRaw(); bytes.HasPrefix(raw, []byte("7")) {
				return refusal(h, "failed at %d", time.Now().UnixNano()), nil
			}
			return nil, nil
		}
	}, "objects are 7: the text differs from the one before: Failure: failed at "},
	{"determinism.messages", "says when it was asked", "", says("BeforeClusterCreate", func(s *stub) string {
		return "waits since " + time.Unix(int64(s.count()), 0).UTC().Format(time.RFC3339)
	}), "the message differs from the one before: waits since 1970-01-01T"},
	{"determinism.messages", "says it by the second", "", says("BeforeClusterUpgrade", func(*stub) string {
		return "asked at " + time.Now().UTC().Format(time.TimeOnly)
	}), "the message differs from the one before: asked at "},
	{"determinism.messages", "says it in another order", "", says("BeforeClusterDelete", func(s *stub) string {
		return []string{"a, b", "b, a"}[s.count()%2]
	}), "the message differs from the one before: "},

	{"malformed.refused", "takes anything for a request", "", func(s *stub) { s.readsAll = true }, "the answer does not say Failure"},
	{"malformed.refused", "fails at what it cannot read", REST, func(s *stub) {
		s.serve = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			if r.ContentLength < 50 {
				http.Error(w, "SyntaxError: Unexpected end of JSON input", http.StatusInternalServerError)
				return
			}
			next(w, r)
		}
	}, "this reports a failure of the server, but the mistake was the caller's"},
	{"malformed.objects", "throws at a Cluster that is none", "", func(s *stub) {
		s.only("BeforeClusterCreate")
		s.before = func(_ context.Context, _ *catalog.Hook, in proto.Message) (proto.Message, error) {
			if !bytes.HasPrefix(in.(*hooksv1alpha1.BeforeClusterCreateRequest).GetCluster().GetRaw(), []byte("{")) {
				return nil, status.Error(codes.Unknown, "TypeError: cluster is no object")
			}
			return nil, nil
		}
	}, `objects are "a string": the handler failed`},
	{"malformed.survives", "remembers the last error", "", func(s *stub) {
		var spoiled atomic.Bool
		s.only("BeforeClusterCreate")
		s.before = func(_ context.Context, h *catalog.Hook, in proto.Message) (proto.Message, error) {
			if len(in.(*hooksv1alpha1.BeforeClusterCreateRequest).GetCluster().GetRaw()) < 100 {
				spoiled.Store(true)
			}
			if spoiled.Load() {
				return refusal(h, "an error occurred"), nil
			}
			return nil, nil
		}
	}, `after wrong requests: the status is "Failure", although the realistic request got Success`},

	{"load.large", "has gRPC's default limit", "", sizeLimit(4 << 20), "with a request of 6 MiB, there is no answer of the hook"},
	{"load.limit", "has a limit of 10 MiB", "", sizeLimit(10 << 20), "with a request of nearly 20 MiB, there is no answer of the hook"},
	{"load.over", "has no limit", "", sizeLimit(1 << 30), "a request of 22 MiB was taken"},
	{"load.concurrent", "takes one call at a time", "", func(s *stub) {
		var inFlight atomic.Int32
		another := make(chan struct{})
		second := sync.OnceFunc(func() { close(another) })
		s.only("ValidateTopology", "UpdateMachine")
		s.before = func(ctx context.Context, h *catalog.Hook, _ proto.Message) (proto.Message, error) {
			if s.count() <= 2 {
				return nil, nil // the realistic requests, one after the other
			}
			defer inFlight.Add(-1)
			if inFlight.Add(1) > 1 {
				second()
				return refusal(h, "busy"), nil
			}
			select {
			case <-another:
			case <-ctx.Done():
			}
			return nil, nil
		}
	}, `with 16 calls at the same time: the status is "Failure"`},
	{"load.deadline", "never recovers from a caller that left", "", func(s *stub) {
		var stuck atomic.Bool
		s.only("ValidateTopology")
		s.shortest = 100 * time.Millisecond // the first to leave, or one of the next, arrives before that
		s.before = func(ctx context.Context, h *catalog.Hook, _ proto.Message) (proto.Message, error) {
			switch {
			case stuck.Load():
				return refusal(h, "the lock is held"), nil
			case s.count() == 1: // the realistic request
				return nil, nil
			}
			<-ctx.Done()
			stuck.Store(true)
			return nil, nil
		}
	}, `after callers that left early, the status is "Failure"`},

	{"protocol.unknown-hook", "answers any path", REST, func(s *stub) {
		s.serve = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			if strings.Contains(r.URL.Path, strings.ToLower(nowhere)) {
				_, _ = w.Write([]byte(`{"status":"Success"}`))
				return
			}
			next(w, r)
		}
	}, "that is not HTTP 404"},
	{"protocol.unknown-hook", "fails at services that it does not have", GRPC, func(s *stub) {
		s.unknown = func(any, grpc.ServerStream) error { return status.Error(codes.Internal, "what?") }
	}, "that is not gRPC Unimplemented"},
	{"protocol.unknown-handler", "ignores the name of the handler", REST, func(s *stub) {
		s.serve = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			r.URL.Path = strings.Replace(r.URL.Path, noHandler, "generatepatches", 1)
			next(w, r)
		}
	}, "that is not HTTP 404"},
	{"protocol.health", "has no health service", GRPC, func(s *stub) { s.noHealth = true }, "there is no health service"},
	{"protocol.health", "is not serving", GRPC, func(s *stub) { s.notReady = true }, "the server says that it is not serving"},
	{"protocol.reflection", "lists only itself", GRPC, func(s *stub) {
		s.reflect = func(server *grpc.Server) {
			reflectionv1.RegisterServerReflectionServer(server, reflection.NewServerV1(reflection.ServerOptions{Services: noServices{}}))
		}
	}, "hookgate.hooks.v1alpha1.LifecycleHooksService is missing"},
}

type noServices struct{}

func (noServices) GetServiceInfo() map[string]grpc.ServiceInfo {
	return map[string]grpc.ServiceInfo{"other.Service": {}}
}

// replace changes the JSON of answers.
func replace(old, text string) func(*catalog.Hook, []byte) []byte {
	return func(_ *catalog.Hook, body []byte) []byte { return bytes.ReplaceAll(body, []byte(old), []byte(text)) }
}

// says leaves one handler, whose answers have a message.
func says(hookName string, message func(*stub) string) func(*stub) {
	return func(s *stub) {
		s.only(hookName)
		s.answer = func(_ *catalog.Hook, _, out proto.Message) { catalog.SetStatus(out, catalog.Success, message(s)) }
	}
}

// sizeLimit leaves one handler, whose requests may have n bytes.
func sizeLimit(n int) func(*stub) {
	return func(s *stub) {
		s.only("ValidateTopology")
		s.limit = n
	}
}

// fails makes BeforeClusterCreate fail.
func fails(err error) func(*stub) {
	return func(s *stub) {
		s.only("BeforeClusterCreate")
		s.before = func(context.Context, *catalog.Hook, proto.Message) (proto.Message, error) { return nil, err }
	}
}

// refuses makes BeforeClusterCreate answer Failure.
func refuses(message string) func(*stub) {
	return func(s *stub) {
		s.only("BeforeClusterCreate")
		s.before = func(_ context.Context, h *catalog.Hook, _ proto.Message) (proto.Message, error) {
			return refusal(h, "%s", message), nil
		}
	}
}

// unless makes BeforeClusterCreate answer Failure unless ok.
func unless(ok func(proto.Message) bool, message string) func(*stub) {
	return func(s *stub) {
		s.only("BeforeClusterCreate")
		s.before = func(_ context.Context, h *catalog.Hook, in proto.Message) (proto.Message, error) {
			if !ok(in) {
				return refusal(h, "%s", message), nil
			}
			return nil, nil
		}
	}
}

// patches makes GeneratePatches answer with this patch alone, of the first item if there is no uid.
func patches(uid string, of hooksv1alpha1.PatchType, text string) func(*stub) {
	return func(s *stub) {
		s.only("GeneratePatches")
		s.answer = func(_ *catalog.Hook, in, out proto.Message) {
			item := &hooksv1alpha1.GeneratePatchesResponseItem{Uid: uid, PatchType: of, Patch: []byte(text)}
			if uid == "" {
				item.Uid = in.(*hooksv1alpha1.GeneratePatchesRequest).GetItems()[0].GetUid()
			}
			out.(*hooksv1alpha1.GeneratePatchesResponse).Items = []*hooksv1alpha1.GeneratePatchesResponseItem{item}
		}
	}
}

// throws makes handlers fail if their settings are so.
func throws(when func(settings map[string]string) bool) func(*stub) {
	return func(s *stub) {
		s.before = func(_ context.Context, _ *catalog.Hook, in proto.Message) (proto.Message, error) {
			if when(in.(interface{ GetSettings() map[string]string }).GetSettings()) {
				return nil, status.Error(codes.Unknown, "KeyError: 'region'")
			}
			return nil, nil
		}
	}
}

// many returns n variables.
func many(n int) []*hooksv1alpha1.ClusterClassVariable {
	list := make([]*hooksv1alpha1.ClusterClassVariable, n)
	for i := range list {
		list[i] = variable(fmt.Sprintf("v%d", i), `{"type":"string"}`)
	}
	return list
}

// defines makes DiscoverVariables answer with these variables.
func defines(variables ...*hooksv1alpha1.ClusterClassVariable) func(*stub) {
	return func(s *stub) {
		s.only("DiscoverVariables")
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			out.(*hooksv1alpha1.DiscoverVariablesResponse).Variables = variables
		}
	}
}

// machinePatch makes CanUpdateMachine answer with this patch.
func machinePatch(of hooksv1alpha1.PatchType, text string) func(*stub) {
	return func(s *stub) {
		s.only("CanUpdateMachine")
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			out.(*hooksv1alpha1.CanUpdateMachineResponse).MachinePatch = &hooksv1alpha1.Patch{PatchType: of, Patch: []byte(text)}
		}
	}
}

// plan makes GenerateUpgradePlan answer with these steps.
func plan(controlPlane, workers []*hooksv1alpha1.UpgradeStep) func(*stub) {
	return func(s *stub) {
		s.only("GenerateUpgradePlan")
		s.answer = func(_ *catalog.Hook, _, out proto.Message) {
			answer := out.(*hooksv1alpha1.GenerateUpgradePlanResponse)
			answer.ControlPlaneUpgrades, answer.WorkersUpgrades = controlPlane, workers
		}
	}
}

// TestBrokenExtensions shows that each check can fail, for the reason that it names.
func TestBrokenExtensions(t *testing.T) {
	for _, b := range slices.Concat(brokenExtensions, beyondLimits) {
		protocols := []Protocol{b.over}
		if b.over == "" {
			protocols = []Protocol{REST, GRPC}
		}
		for _, p := range protocols {
			t.Run(b.check+"/"+string(p)+"/"+b.how, func(t *testing.T) {
				t.Parallel()
				s := newStub()
				b.breaks(s)
				report, err := Run(t.Context(), s.start(t, p), Options{Only: []string{b.check}})
				if err != nil {
					t.Fatal(err)
				}
				r := report.Results[0]
				if len(report.Results) != 1 || r.ID != b.check || r.Status != Fail {
					t.Fatalf("an extension that %s: got %+v, want it to fail", b.how, report.Results)
				}
				for _, f := range r.Findings {
					if f.Sent == "" || f.Got == "" {
						t.Errorf("a finding does not say what was sent and what came: %+v", f)
					}
					if strings.Contains(f.Problem, b.want) {
						return
					}
				}
				t.Errorf("an extension that %s: got %+v, want %q", b.how, r.Findings, b.want)
			})
		}
	}
}

// TestEveryCheckCanFail compares the tables with the list of checks.
func TestEveryCheckCanFail(t *testing.T) {
	rows := map[string]bool{}
	for _, b := range brokenExtensions {
		rows[b.check] = true
	}
	for _, b := range brokenProviders {
		rows[b.check] = true
	}
	for _, b := range brokenGroups {
		rows[b.check] = true
	}
	seen := map[string]bool{}
	for _, c := range Checks() {
		if !rows[c.ID] {
			t.Errorf("no broken extension proves that %s can fail", c.ID)
		}
		if seen[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		seen[c.ID] = true
		if c.Rule == "" || c.Source == "" || c.Level != Must && c.Level != Should || !strings.HasSuffix(c.Rule, ".") {
			t.Errorf("%s has no rule of one sentence, no source or no level: %+v", c.ID, c)
		}
	}
	for id := range rows {
		if !seen[id] {
			t.Errorf("a broken extension is for %s, which is no check", id)
		}
	}
}
