// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/caller"
	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/infrastructure/internal/gatewaytest"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

func newClient(t *testing.T, perClass int, gateway gatewaytest.Gateway) *Client {
	t.Helper()
	c, err := New(Config{Gateway: gateway, CallsPerClass: perClass})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An answer is used only if it keeps the contract. A case changes one that does.
func TestPoolAnswers(t *testing.T) {
	type response = infrahooksv1alpha1.ReconcileMachinePoolResponse
	for _, c := range []struct {
		problem, reason string
		change          func(*response)
	}{
		{"", "", func(*response) {}},
		{"no status", infrav1.BadAnswerReason, func(r *response) { r.Status = 0 }},
		{"phase is missing", infrav1.BadAnswerReason, func(r *response) { r.Phase = 0 }},
		{"because phase is Failed", infrav1.BadAnswerReason, func(r *response) { r.Phase = infrahooksv1alpha1.Phase_PHASE_FAILED }},
		{"instanceCount is missing", infrav1.IncompleteListReason, func(r *response) { r.InstanceCount = nil }},
		{"the list was cut", infrav1.IncompleteListReason, func(r *response) { r.InstanceCount = new(int32(3)) }},
		{"the list was cut", infrav1.IncompleteListReason, func(r *response) { r.Instances = nil }},
		{`"a" occurs twice`, infrav1.BadAnswerReason, func(r *response) { r.Instances[1].Name = "a" }},
		{"occurs twice", infrav1.DuplicateProviderIDReason, func(r *response) { r.Instances[1].ProviderId = "x://1" }},
		{"instances[1].providerId is missing", infrav1.BadAnswerReason, func(r *response) { r.Instances[1].ProviderId = "" }},
		{"does not begin with", infrav1.BadAnswerReason, func(r *response) { r.Instances[1].ProviderId = "y://1" }},
		{"", "", func(r *response) { r.Instances[1].ProviderId = "old://1" }}, // known
		{"", "", func(r *response) { r.ProviderId = "arn:group/of/a/cloud:" + strings.Repeat("g", 512-21) }},
		{"at most 63", infrav1.BadAnswerReason, func(r *response) { r.Instances[0].Revision = strings.Repeat("r", 64) }},
		{"", "", func(r *response) { r.Instances[0].Revision = strings.Repeat("r", 63) }},
		{"providerId: must have at most 512", infrav1.BadAnswerReason, func(r *response) { r.ProviderId = strings.Repeat("g", 513) }},
		{"and no spaces", infrav1.BadAnswerReason, func(r *response) { r.ProviderId = "the group" }},
		{"addresses[0].type", infrav1.BadAnswerReason, func(r *response) {
			r.Instances[0].Addresses = []*infrahooksv1alpha1.MachineAddress{{Type: "IP", Address: "1"}}
		}},
	} {
		answer := &response{
			Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Phase: infrahooksv1alpha1.Phase_PHASE_READY,
			InstanceCount: new(int32(2)), Instances: []*infrahooksv1alpha1.Instance{
				{Name: "a", ProviderId: "x://1", Phase: infrahooksv1alpha1.Phase_PHASE_READY},
				{Name: "b", ProviderId: "x://2", Phase: infrahooksv1alpha1.Phase_PHASE_READY},
			},
		}
		c.change(answer)
		cl := newClient(t, 1, func(context.Context, *catalog.Hook, string, proto.Message) *gatewaytest.Answer {
			return &gatewaytest.Answer{Message: answer}
		})
		_, err := cl.ReconcileMachinePool(t.Context(), Target{Handler: "p.acme", ProviderIDPrefix: "x://"},
			&infrahooksv1alpha1.ReconcileMachinePoolRequest{}, map[string]bool{"old://1": true})
		e, _ := errors.AsType[*Error](err)
		switch {
		case c.problem == "" && err != nil:
			t.Errorf("refused: %v", err)
		case c.problem != "" && (e == nil || e.Reason != c.reason || !strings.Contains(e.Message, c.problem)):
			t.Errorf("%v, want %s: %s", err, c.reason, c.problem)
		}
	}
}

// A case changes an answer about a machine that keeps the contract.
func TestMachineAnswers(t *testing.T) {
	type response = infrahooksv1alpha1.ReconcileMachineResponse
	for problem, change := range map[string]func(*response){
		"":                           func(*response) {},
		"no status":                  func(r *response) { r.Status = 0 },
		"phase is missing":           func(r *response) { r.Phase = 0 },
		"providerId is missing":      func(r *response) { r.ProviderId = "" },
		`does not begin with "x://"`: func(r *response) { r.ProviderId = "y://1" },
		"Ready belongs to the controllers": func(r *response) {
			r.Conditions = []*infrahooksv1alpha1.Condition{{Type: "Ready", Status: "True", Reason: "R"}}
		},
	} {
		answer := &response{
			Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Phase: infrahooksv1alpha1.Phase_PHASE_READY, ProviderId: "x://1",
		}
		change(answer)
		cl := newClient(t, 1, func(context.Context, *catalog.Hook, string, proto.Message) *gatewaytest.Answer {
			return &gatewaytest.Answer{Message: answer}
		})
		_, err := cl.ReconcileMachine(t.Context(), Target{Handler: "m.acme", ProviderIDPrefix: "x://"}, &infrahooksv1alpha1.ReconcileMachineRequest{})
		if e, _ := errors.AsType[*Error](err); problem == "" && err != nil ||
			problem != "" && (e == nil || e.Reason != infrav1.BadAnswerReason || !strings.Contains(e.Message, problem)) {
			t.Errorf("%v, want %q", err, problem)
		}
	}
}

// A case changes an answer about a Cluster that keeps the contract.
func TestClusterAnswers(t *testing.T) {
	type response = infrahooksv1alpha1.ReconcileClusterResponse
	endpoint := func(host string, port int32) func(*response) {
		return func(r *response) {
			r.ControlPlaneEndpoint = &infrahooksv1alpha1.Endpoint{Host: host, Port: port}
		}
	}
	const hosts, ports = "controlPlaneEndpoint.host: must have 1 to", "controlPlaneEndpoint.port: must be from 1 to 65535, is "
	for _, tt := range []struct {
		change  func(*response)
		problem string
	}{
		{endpoint("h", 1), ""},
		{endpoint("h", 65535), ""},
		{endpoint("h", 0), ports + "0"},
		{endpoint("h", 65536), ports + "65536"},
		{endpoint("", 1), hosts},
		{endpoint("a b", 1), hosts},
	} {
		answer := &response{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Phase: infrahooksv1alpha1.Phase_PHASE_READY}
		tt.change(answer)
		cl := newClient(t, 1, func(context.Context, *catalog.Hook, string, proto.Message) *gatewaytest.Answer {
			return &gatewaytest.Answer{Message: answer}
		})
		_, err := cl.ReconcileCluster(t.Context(), Target{Handler: "c.acme"}, &infrahooksv1alpha1.ReconcileClusterRequest{})
		if e, _ := errors.AsType[*Error](err); tt.problem == "" && err != nil ||
			tt.problem != "" && (e == nil || e.Reason != infrav1.BadAnswerReason || !strings.Contains(e.Message, tt.problem)) {
			t.Errorf("%v, want %q", err, tt.problem)
		}
	}
}

// The page shows hooks in JSON: every member is one of the contract, and the answers are accepted.
func TestThePageShowsHooksInJSON(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "infrastructure.md"))
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	discovery, machine := &infrahooksv1alpha1.DiscoverInfrastructureResponse{}, &infrahooksv1alpha1.ReconcileMachineResponse{}
	answer := &infrahooksv1alpha1.ReconcileMachinePoolResponse{}
	shown := []proto.Message{discovery, machine, answer}
	blocks := regexp.MustCompile("(?ms)^```json\n(\\{.*?)^```$").FindAllSubmatch(page, -1)
	if len(blocks) != len(shown) {
		t.Fatalf("the page has %d messages in JSON, want %d", len(blocks), len(shown))
	}
	for i, m := range shown {
		if err := codec.New(hooks).Decode(blocks[i][1], m); err != nil {
			t.Fatalf("%s: %v", blocks[i][1], err)
		}
		if text := prototext.Format(m); strings.Contains(text, "unknown_members") {
			t.Errorf("a member is not in the contract: %s", text)
		}
	}
	if err := checkMachine(machine, discovery.GetProviderIdPrefix(), ""); err != nil {
		t.Error(err)
	}
	if err := checkPool(answer, discovery.GetProviderIdPrefix(), nil); err != nil {
		t.Error(err)
	}
}

// Errors have the reason of a condition, and the kind of the gateway's error for metrics.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		response        *gatewaytest.Answer
		reason, outcome string
	}{
		{&gatewaytest.Answer{NoAnswer: hook.Errorf(hook.Unreachable, "connection refused")}, infrav1.CallFailedReason, "Unreachable"},
		{&gatewaytest.Answer{GRPC: status.New(codes.Unimplemented, "no")}, infrav1.CallFailedReason, "Other"},
		{&gatewaytest.Answer{Invalid: errors.New("cut")}, infrav1.BadAnswerReason, infrav1.BadAnswerReason},
		{&gatewaytest.Answer{Message: &infrahooksv1alpha1.DeleteMachineResponse{}}, infrav1.BadAnswerReason, infrav1.BadAnswerReason},
	} {
		cl := newClient(t, 1, func(context.Context, *catalog.Hook, string, proto.Message) *gatewaytest.Answer { return c.response })
		_, err := cl.DeleteMachine(t.Context(), Target{Handler: "d.acme"}, &infrahooksv1alpha1.DeleteMachineRequest{})
		e, _ := errors.AsType[*Error](err)
		if e == nil || e.Reason != c.reason || e.Outcome != c.outcome || !strings.HasPrefix(e.Message, `DeleteMachine of handler "d.acme": `) {
			t.Errorf("%v: %+v, want %s and %s", c.response, e, c.reason, c.outcome)
		}
	}
}

// The texts of conditions name the hook and the handler, and not the gateway, whatever caller's own errors say.
func TestErrorsOfACaller(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "x.sock")
	ask := func() string {
		gateway, err := caller.New(caller.Config{URL: "unix://" + socket})
		if err != nil {
			t.Fatal(err)
		}
		defer gateway.Close()
		c, err := New(Config{Gateway: gateway})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.DeleteMachine(t.Context(), Target{Handler: "d.acme"}, &infrahooksv1alpha1.DeleteMachineRequest{})
		return err.Error()
	}
	if got := ask(); got != `DeleteMachine of handler "d.acme": the gateway cannot be called: there is no such socket` {
		t.Error(got)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var answer any // a message, or an error
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err, ok := answer.(error); ok {
			return err
		}
		return stream.SendMsg(answer)
	}))
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	ofGateway, err := status.New(codes.NotFound, "no handler").WithDetails(&errdetails.ErrorInfo{Reason: hook.UnknownHandler.String()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		answer any
		want   string
	}{
		{ofGateway.Err(), "no handler"},
		{status.Error(codes.Internal, "a proxy"), "a proxy"},
		{&infrahooksv1alpha1.DeleteMachineResponse{}, "the answer has no status"},
		{&infrahooksv1alpha1.DeleteMachineResponse{
			Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, Message: "no quota",
		}, "the extension answers Failure: no quota"},
	} {
		answer = c.answer
		if got, want := ask(), `DeleteMachine of handler "d.acme": `+c.want; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A class whose extension hangs takes its share of the calls, and no more.
func TestCallsOfAClassAreBounded(t *testing.T) {
	entered, release := make(chan string), make(chan struct{})
	cl := newClient(t, 2, func(_ context.Context, _ *catalog.Hook, handler string, _ proto.Message) *gatewaytest.Answer {
		entered <- handler
		<-release
		return &gatewaytest.Answer{NoAnswer: hook.Errorf(hook.Timeout, "no answer")}
	})
	done := make(chan error)
	call := func(class string) {
		_, err := cl.DeleteMachine(t.Context(), Target{Class: class, Handler: class}, &infrahooksv1alpha1.DeleteMachineRequest{})
		done <- err
	}
	for range 2 {
		go call("slow")
		<-entered
	}
	go call("slow")
	if err := <-done; !errors.Is(err, ErrBusy) {
		t.Errorf("one beyond the limit: %v, want %v", err, ErrBusy)
	}
	go call("other")
	if got := <-entered; got != "other" {
		t.Errorf("called %s", got)
	}
	close(release)
	for range 3 {
		if err := <-done; errors.Is(err, ErrBusy) {
			t.Errorf("%v", err)
		}
	}
	go call("slow") // the places are free again
	<-entered
	if err := <-done; errors.Is(err, ErrBusy) {
		t.Errorf("%v", err)
	}
}

// TestCredentialsDoNotComeBack has an extension that repeats parts of what it was sent. The order in which a map has the
// credentials must not matter.
func TestCredentialsDoNotComeBack(t *testing.T) {
	subject := &infrahooksv1alpha1.Subject{Credentials: map[string]string{
		"user": "administrator", "password": "administrator-7vF3", "short": "acme",
		"key": "-----BEGIN KEY-----\nMIGHAgEAMBMGByqGSM49\nAgEGCCqGSM49AwEHBG0w\n-----END KEY-----\n", "file": `{"id":"q\"1"}`,
	}}
	for message, want := range map[string]string{
		"wrong password administrator-7vF3 of administrator at acme": "wrong password *** of *** at acme",
		"line 2: AgEGCCqGSM49AwEHBG0w is no key":                     "line 2: *** is no key",
		`got {"file":"{\"id\":\"q\\\"1\"}"}`:                         `got {"file":"***"}`,
	} {
		for range 20 {
			if got := newScrubber(subject).clean(message); got != want {
				t.Fatalf("%s: got %s, want %s", message, got, want)
			}
		}
	}
}
