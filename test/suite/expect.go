// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/samples"
)

// handlersOf returns the names of the extension program's handlers of a hook, sorted.
func handlersOf(hook string) []string {
	return map[string][]string{
		"BeforeClusterCreate":          {"create-audit", "create-dns", "create-quota"},
		"AfterControlPlaneInitialized": {"initialized"},
		"BeforeClusterUpgrade":         {"upgrade-backup", "upgrade-window"},
		"BeforeControlPlaneUpgrade":    {"before-control-plane"},
		"AfterControlPlaneUpgrade":     {"after-control-plane"},
		"BeforeWorkersUpgrade":         {"before-workers"},
		"AfterWorkersUpgrade":          {"after-workers"},
		"AfterClusterUpgrade":          {"after-cluster"},
		"BeforeClusterDelete":          {"delete-backup", "delete-dns"},
		"GeneratePatches":              {"patches"},
		"ValidateTopology":             {"validate"},
		"DiscoverVariables":            {"variables"},
		"GenerateUpgradePlan":          {"plan"},
		"CanUpdateMachine":             {"can-update-machine"},
		"CanUpdateMachineSet":          {"can-update-machineset"},
		"UpdateMachine":                {"update-machine"},
	}[hook]
}

// members is a JSON object that keeps numbers as written.
type members map[string]any

func decodeMembers(t testing.TB, body []byte) members {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var m members
	if err := decoder.Decode(&m); err != nil {
		t.Fatalf("decode %.200s: %v", body, err)
	}
	return m
}

// direct returns a handler's answer to a call that bypasses the gateway. The request's settings must be merged already,
// as the gateway does it. Cluster API's server sets no kind and apiVersion.
func direct(t testing.TB, client *http.Client, extensionURL, hook, handler string,
	request runtimehooksv1.RequestObject) members {
	t.Helper()
	got := post(t, client, extensionURL+path(hook, handler), samples.Marshal(request))
	if got.code != http.StatusOK {
		t.Fatalf("the extension answers %d to a direct call: %s", got.code, got.body)
	}
	m := decodeMembers(t, got.body)
	delete(m, "kind")
	delete(m, "apiVersion")
	return m
}

// merged returns the aggregate of several answers of a lifecycle hook: the joined messages, and the least nonzero
// retryAfterSeconds.
func merged(answers []members) members {
	out := members{"status": "Success"}
	var messages []string
	var least json.Number
	for _, a := range answers {
		if message, ok := a["message"].(string); ok && message != "" {
			messages = append(messages, message)
		}
		retry, ok := a["retryAfterSeconds"].(json.Number)
		if !ok {
			continue
		}
		if least == "" || least == "0" || retry != "0" && less(retry, least) {
			least = retry
		}
	}
	out["message"] = strings.Join(messages, ", ")
	if least != "" {
		out["retryAfterSeconds"] = least
	}
	return out
}

func less(a, b json.Number) bool {
	x, errX := a.Int64()
	y, errY := b.Int64()
	return errX == nil && errY == nil && x < y
}

// withSettings returns the request with the settings of an ExtensionConfig added; the request's own override them.
func withSettings(request runtimehooksv1.RequestObject, settings map[string]string) runtimehooksv1.RequestObject {
	all := map[string]string{}
	maps.Copy(all, settings)
	maps.Copy(all, request.GetSettings())
	request.SetSettings(all)
	return request
}

// response returns a new response of Cluster API's type for the hook.
func response(hook string) runtimehooksv1.ResponseObject {
	switch hook {
	case "Discovery":
		return &runtimehooksv1.DiscoveryResponse{}
	case "BeforeClusterCreate":
		return &runtimehooksv1.BeforeClusterCreateResponse{}
	case "AfterControlPlaneInitialized":
		return &runtimehooksv1.AfterControlPlaneInitializedResponse{}
	case "BeforeClusterUpgrade":
		return &runtimehooksv1.BeforeClusterUpgradeResponse{}
	case "BeforeControlPlaneUpgrade":
		return &runtimehooksv1.BeforeControlPlaneUpgradeResponse{}
	case "AfterControlPlaneUpgrade":
		return &runtimehooksv1.AfterControlPlaneUpgradeResponse{}
	case "BeforeWorkersUpgrade":
		return &runtimehooksv1.BeforeWorkersUpgradeResponse{}
	case "AfterWorkersUpgrade":
		return &runtimehooksv1.AfterWorkersUpgradeResponse{}
	case "AfterClusterUpgrade":
		return &runtimehooksv1.AfterClusterUpgradeResponse{}
	case "BeforeClusterDelete":
		return &runtimehooksv1.BeforeClusterDeleteResponse{}
	case "GeneratePatches":
		return &runtimehooksv1.GeneratePatchesResponse{}
	case "ValidateTopology":
		return &runtimehooksv1.ValidateTopologyResponse{}
	case "DiscoverVariables":
		return &runtimehooksv1.DiscoverVariablesResponse{}
	case "GenerateUpgradePlan":
		return &runtimehooksv1.GenerateUpgradePlanResponse{}
	case "CanUpdateMachine":
		return &runtimehooksv1.CanUpdateMachineResponse{}
	case "CanUpdateMachineSet":
		return &runtimehooksv1.CanUpdateMachineSetResponse{}
	case "UpdateMachine":
		return &runtimehooksv1.UpdateMachineResponse{}
	}
	panic(fmt.Sprintf("no response for hook %q", hook))
}

// asCaller reads a body as Cluster API's client does, and more strictly: no unknown member, nothing after the end,
// the hook's apiVersion and kind, and the same members after upstream's type encodes it again.
func asCaller(t testing.TB, hook string, body []byte) runtimehooksv1.ResponseObject {
	t.Helper()
	out := response(hook)
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		t.Fatalf("Cluster API's %T does not take the answer: %v\n%.500s", out, err, body)
	}
	if decoder.More() {
		t.Errorf("something follows the answer: %.500s", body)
	}
	if got, want := out.GetObjectKind().GroupVersionKind(),
		runtimehooksv1.GroupVersion.WithKind(hook+"Response"); got != want {
		t.Errorf("the answer is a %v, want %v", got, want)
	}
	if got, want := decodeMembers(t, body), decodeMembers(t, samples.Marshal(out)); !slices.Equal(names(got), names(want)) {
		t.Errorf("the answer has members %v, Cluster API writes %v", names(got), names(want))
	}
	return out
}

func names(m members) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// checkFailure checks that the answer has the status code and that its body is a Failure of the hook, or of no hook if
// hook is empty. It returns the message.
func checkFailure(t testing.TB, hook string, got answer, code int) string {
	t.Helper()
	if got.code != code {
		t.Fatalf("status %d, want %d: %.500s", got.code, code, got.body)
	}
	m := decodeMembers(t, got.body)
	if hook != "" {
		if m["kind"] != hook+"Response" {
			t.Errorf("kind %v, want %sResponse", m["kind"], hook)
		}
		asCaller(t, hook, got.body)
	}
	if m["apiVersion"] != runtimehooksv1.GroupVersion.String() {
		t.Errorf("apiVersion %v, want %s", m["apiVersion"], runtimehooksv1.GroupVersion)
	}
	if m["status"] != "Failure" {
		t.Errorf("status %v, want Failure", m["status"])
	}
	message, _ := m["message"].(string)
	if message == "" {
		t.Errorf("no message in %s", got.body)
	}
	if strings.Contains(message, "127.0.0.1:") {
		t.Errorf("message has an address with an ephemeral port: %s", message)
	}
	return message
}
